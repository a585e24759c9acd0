"""Every model and every search, in PyTorch."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from regard.alignment.shortlist import Shortlist
from regard.data.batch import collate_sources
from regard.data.vocabulary import SourceInput
from regard.errors import RegardError
from regard.inference.engines.base import ENGINES, Engine
from regard.inference.engines.shortlisted_model import ShortlistedModel
from regard.inference.engines.torch_int8 import quantize_model
from regard.inference.engines.torch_int8 import unsupported_reason as unsupported_int8
from regard.inference.results import Hypothesis
from regard.inference.search.base import OnToken
from regard.inference.search.batch_search import search
from regard.inference.search_config import Constraints, SearchConfig
from regard.runs.bundle import Bundle, load_bundle
from regard.runs.devices import resolve_device
from regard.runs.folder import RunFolder


@ENGINES.register("torch")
class TorchEngine(Engine):
    """A model in PyTorch, on any device."""

    name, title, priority = "torch", "PyTorch", 10
    default_precision = "float32"
    batch_tokens = 8192

    def __init__(self, bundle: Bundle, shortlist: Shortlist | None = None, *, int8: bool = False) -> None:
        """int8: linear layers are quantized."""
        self.bundle, self._shortlist = bundle, shortlist
        self._model = quantize_model(bundle.model) if int8 else bundle.model

    @cached_property
    def _pieces(self) -> list[str]:
        vocabulary = self.bundle.target_vocabulary
        return vocabulary.pieces(range(len(vocabulary)))

    @classmethod
    def unsupported_model(cls, opened: RunFolder, device: str) -> str:
        return ""

    @classmethod
    def open(
        cls, opened: RunFolder, *, device: str, precision: str, threads: int, shortlist: Shortlist | None
    ) -> "TorchEngine":
        if threads:
            torch.set_num_threads(threads)
        bundle = load_bundle(opened.folder, str(resolve_device(device)))
        if precision == "int8" and (reason := unsupported_int8(next(bundle.model.parameters()).device)):
            raise RegardError(f"precision: int8 is not possible, since {reason}; use float32.")
        return cls(bundle, shortlist, int8=precision == "int8")

    def unsupported_reason(self, config: SearchConfig) -> str:
        """Nothing."""
        return ""

    def search(
        self,
        sources: Sequence[SourceInput],
        config: SearchConfig,
        constraints: Sequence[Constraints] | None = None,
        on_token: OnToken | None = None,
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source. on_token: called with every token as it is generated."""
        device = next(self.bundle.model.parameters()).device
        source, mask = (each.to(device) for each in collate_sources(self.bundle.source_processor, sources))
        if self._shortlist is None or any(constraints or ()) or config.forbidden:
            return search(self._model, source, mask, config, constraints, self._pieces, on_token)
        # Each source with its own shortlist: its batch must not change its output.
        shortlists = [self._shortlist.candidates_for(each) for each in sources]
        vocabulary = np.unique(np.concatenate(shortlists))
        allowed = torch.from_numpy(np.stack([np.isin(vocabulary, each) for each in shortlists])).to(device)
        model: Any = ShortlistedModel(self._model, torch.from_numpy(vocabulary).long().to(device), allowed)
        found = search(model, source, mask, config)
        return [[replace(h, tokens=[int(vocabulary[token]) for token in h.tokens]) for h in each] for each in found]
