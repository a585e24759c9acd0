"""Prompts as inputs: a language model has no source, its output continues the prompt."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from regard.data.input_validation import LONE_SURROGATE, normalize_whitespace
from regard.data.vocabulary import SourceInput
from regard.errors import RegardError
from regard.inference.inputs.base import INVALID_TEXT
from regard.inference.inputs.request import Request
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.results import Result
from regard.inference.search_config import Constraints
from regard.special_tokens import EOS
from regard.views.notebook import AttentionView

NO_SOURCE = np.zeros(0, np.uint8)


class PromptInputs:
    """Prompts that a language model continues."""

    example = ""

    def __init__(self, run: LoadedRun) -> None:
        self.run = run

    def check(self, inputs: Sequence[Any]) -> None:
        for text in inputs:
            if not isinstance(text, str):
                raise RegardError(f"{repr(text)[:60]} is not a text; give a prompt.")

    def split_into_chunks(self, item: Any) -> list[tuple[str, bool]]:
        return []

    def split_at_placeholders(self, item: Any) -> list[tuple[str, bool]]:
        return []

    def requests(self, inputs: Sequence[str], options: Options) -> list[Request]:
        return [self.request(text, options) for text in inputs]

    def request(self, text: str, options: Options) -> Request:
        """One prompt, encoded as the prefix of its output."""
        if LONE_SURROGATE.search(text):
            return Request(text, NO_SOURCE, error=INVALID_TEXT)
        run, max_tokens = self.run, self.run.max_source_tokens
        prompt = tuple(run.target_vocabulary.encode([text])[0]) if self._keeps_whitespace else run.target_tokens(text)
        if len(prompt) >= max_tokens:
            return Request(text, NO_SOURCE, error=f"it has {len(prompt):,} tokens, and {max_tokens - 1:,} is the most")
        max_length = min(max_tokens, len(prompt) + options.max_tokens + 1)
        shown = text if self._keeps_whitespace else normalize_whitespace(text)
        return Request(shown, NO_SOURCE, Constraints(prefix=prompt, max_length=max_length))

    def length(self, tokens: SourceInput) -> int:
        """There is no source; an output may take up to this many positions of a batch."""
        return self.run.max_source_tokens

    def originals(self, item: Any) -> tuple[str, ...]:
        return ()

    def source_and_target(
        self, source: str, target: str | Result | None, to: str, predict: Callable[[Any], Result]
    ) -> tuple[SourceInput, list[int]]:
        """An empty source, and the tokens of the whole text, or of a result."""
        if isinstance(target, str):
            raise RegardError("attend: a language model has no source; give the whole text as one.")
        if isinstance(target, Result):
            return NO_SOURCE, target.tokens
        self.check([source])
        request = self.request(source, Options())
        if request.error:
            raise RegardError(f"{request.text[:60]!r}: {request.error}.")
        if not request.constraints.prefix:
            raise RegardError("attend: there is no text.")
        return NO_SOURCE, [*request.constraints.prefix, EOS]

    def check_attribution(self) -> None:
        raise RegardError("attend: gradient times input is for models that have a source.")

    def add_source_media(self, view: AttentionView, item: Any) -> AttentionView:
        return view

    @property
    def _keeps_whitespace(self) -> bool:
        """Whether the tokenizer preserves line ends and runs of blanks."""
        return bool(getattr(self.run.target_vocabulary, "keeps_whitespace", False))
