"""A language model: how a text begins in, how it goes on out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from regard.data.input_validation import LONE_SURROGATE, normalize_whitespace
from regard.data.vocabulary import Given
from regard.errors import RegardError
from regard.inference.attention import captured_view
from regard.inference.engines.torch_engine import TorchEngine
from regard.inference.options import Options
from regard.inference.requests import Asked
from regard.inference.results import Result, Wish
from regard.inference.translator import Translator
from regard.interpret.forced_pass import forced
from regard.special_tokens import END
from regard.views.notebook import CapturedView

NEW = 64  # tokens that are said, if nobody says how many


class Continuer(Translator):
    """A model that reads nothing: its source is how the text begins, its result the whole text."""

    def stream(self, text: str, heard: Callable[[str], None], options: Options | None = None, **more: Any) -> Result:
        """One text, told piece by piece as it is said, how it begins first. Raises RegardError for a beam: what it says
        first it may take back."""
        chosen = Options.of(more) if options is None else replace(options, **more)
        if not (chosen.draws or chosen.beam == 1) or chosen.nbest > 1:
            raise RegardError("stream: only what is never taken back can be told at once; draw, or use beam=1.")
        self.check_given([text])
        (asked,) = self._sources([text], chosen)
        if asked.wrong:
            raise RegardError(f"{asked.text[:60]!r}: {asked.wrong}.")
        said: list[int] = []
        told = 0

        def hear(rows: list[int], tokens: list[int]) -> None:
            nonlocal told
            said.extend(token for token in tokens if token != END)
            (whole,) = self.target_side.decode([said])
            if len(said) >= len(asked.wish.prefix) and not whole.endswith("\ufffd"):  # half of a letter
                heard(whole[told:])
                told = len(whole)

        engine = self._every_search
        assert isinstance(engine, TorchEngine)
        (found,) = engine.search([asked.tokens], self.search(chosen), [asked.wish], hear)
        result = self._result(asked, found)
        heard(result.text[told:])  # what was half a letter to the end
        return result

    def attend(
        self, source: str, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> CapturedView:
        """What the model attends to over a whole text, or a result. Raises RegardError for what it cannot read."""
        if attribution:
            raise RegardError("attend: gradient times input is for models that read something.")
        if isinstance(target, str):
            raise RegardError("attend: this model reads nothing before it writes; give the whole text as one.")
        if isinstance(target, Result):
            tokens = target.tokens
        else:
            self.check_given([source])
            (asked,) = self._sources([source], Options())
            if asked.wrong:
                raise RegardError(f"{asked.text[:60]!r}: {asked.wrong}.")
            if not asked.wish.prefix:
                raise RegardError("attend: there is no text.")
            tokens = [*asked.wish.prefix, END]
        nothing = np.zeros(0, np.uint8)
        told = forced(self.bundle, [nothing], [tokens])[0]
        return captured_view((self.source_side, self.target_side), (nothing, tokens), told.weights)

    def check_given(self, sources: Sequence[Any]) -> None:
        """Raises RegardError for what is no text."""
        for text in sources:
            if not isinstance(text, str):
                raise RegardError(f"generate: {repr(text)[:60]} is not a text; give how it begins.")

    def fits(self, text: str) -> bool:
        """What is too long is said to be."""
        return True

    def length(self, source: Given) -> int:
        """Nothing is read; this much room a text takes in a batch."""
        return self.longest

    def originals_in(self, source: str) -> tuple[str, ...]:
        """Nothing is kept as it is."""
        return ()

    def _parts(self, text: str) -> list[tuple[str, bool]]:
        return []

    def _sources(self, texts: Sequence[str], options: Options) -> list[Asked]:
        return [self._asked(text, options) for text in texts]

    def _asked(self, text: str, options: Options) -> Asked:
        nothing = np.zeros(0, np.uint8)
        if LONE_SURROGATE.search(text):
            return Asked(text, nothing, wrong="it is not UTF-8, or has half a character (a lone surrogate)")
        begun = self.target_tokens(text) if not self._keeps_whitespace else tuple(self.target_side.encode([text])[0])
        if len(begun) >= self.longest:
            return Asked(text, nothing, wrong=f"it has {len(begun):,} tokens, and {self.longest - 1:,} is the most")
        most = min(self.longest, len(begun) + int(options.most or NEW) + 1)
        return Asked(
            text if self._keeps_whitespace else normalize_whitespace(text), nothing, Wish(prefix=begun, most=most)
        )

    @property
    def _keeps_whitespace(self) -> bool:
        """Whether line ends and runs of blanks are part of a text."""
        return bool(getattr(self.target_side, "keeps_whitespace", False))
