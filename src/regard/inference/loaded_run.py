"""A run that is open for inference: its description, vocabularies and engine; its model in PyTorch when needed."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from regard.alignment.alignment_head import AlignmentHead
from regard.data.input_validation import normalize_whitespace
from regard.data.targets.base import Target
from regard.data.vocabulary import SourceProcessor, Vocabulary, as_vocabulary, has_tokens
from regard.inference.engines.base import Engine
from regard.inference.options import Options
from regard.inference.search_config import SearchConfig
from regard.runs.folder import RunDescription

if TYPE_CHECKING:
    from regard.inference.engines.torch import TorchEngine
    from regard.runs.bundle import Bundle


class LoadedRun:
    """What every pipeline needs of a run.

    There may be two engines: the fast one for what it supports, PyTorch's for everything else. `bundle` opens the model
    in PyTorch when it is first needed. `engine_reason`: which engine it is, and why.
    """

    def __init__(
        self,
        description: RunDescription,
        source_processor: SourceProcessor,
        target: Target,
        engine: Engine,
        open_bundle: "Callable[[], Bundle]",
        engine_reason: str = "",
        alignment_head: AlignmentHead | None = None,
    ) -> None:
        self.description, self.source_processor, self.target = description, source_processor, target
        self.engine, self.engine_reason, self.alignment_head = engine, engine_reason, alignment_head
        self._open_bundle = open_bundle

    @property
    def target_vocabulary(self) -> Vocabulary:
        """The target as tokens. Raises RegardError for a model that predicts none."""
        return as_vocabulary(self.target)

    @cached_property
    def bundle(self) -> "Bundle":
        """The model in PyTorch."""
        return self._open_bundle()

    @cached_property
    def torch_engine(self) -> "TorchEngine":
        """The engine that supports every search."""
        from regard.inference.engines.torch import TorchEngine

        return self.engine if isinstance(self.engine, TorchEngine) else TorchEngine(self.bundle)

    @cached_property
    def max_source_tokens(self) -> int:
        """Source tokens that the model reads at most, special tokens included."""
        limit = self.description.max_tokens
        return min(limit, self.description.model.encoder.max_length or limit)

    @cached_property
    def max_target_tokens(self) -> int:
        """Target tokens that the model produces at most, the end of sequence included."""
        limit = self.description.max_tokens
        return min(limit, self.description.model.decoder.max_length or limit)

    def normalize_case(self, text: str) -> str:
        """Lowercase text, if the model was trained on lowercase text."""
        return text.lower() if self.description.lowercase else text

    def target_tokens(self, text: str) -> tuple[int, ...]:
        """The tokens of a target text, without the end of sequence."""
        text = normalize_whitespace(self.normalize_case(text))
        return tuple(self.target_vocabulary.encode([text])[0]) if text else ()

    def search_config(self, options: Options) -> SearchConfig:
        """The search settings, with the length limits of this model."""
        return options.search_config(
            tokens_per_source_token=self.description.tokens_per_source_token,
            max_length=self.max_target_tokens,
            vocabulary=len(self.target_vocabulary) if has_tokens(self.target) else 0,
            classes=not self.description.model.decoder.predicts_tokens,
        )
