"""Models that say something at the places of a text, all at once: tags of its words, or where an answer stands."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.data.batching import given
from regard.data.input_validation import LONE_SURROGATE
from regard.data.vocabulary import in_text
from regard.errors import RegardError
from regard.inference.attention import captured_view
from regard.inference.options import Options
from regard.inference.results import Result
from regard.inference.translator import Translator
from regard.interpret.forced_pass import forced
from regard.special_tokens import END
from regard.views.notebook import CapturedView

AT_ONCE = 4096  # tokens, padding counted, that are read together


@dataclass(frozen=True)
class Read:
    """A text as it is read: one row of tokens, or several of a long one; or what is wrong with it."""

    text: str
    rows: Sequence[list[int]] = ()
    about: Any = None  # what is needed to make something of the places
    wrong: str = ""

    @property
    def size(self) -> int:
        """Tokens, padding counted."""
        return len(self.rows) * max(map(len, self.rows))


class Placewise(Translator):
    """Texts in, something of their places out."""

    what: str  # is said

    @abstractmethod
    def _read(self, text: str) -> Read: ...

    @abstractmethod
    def _outcome(self, read: Read, logits: Sequence[Tensor]) -> Result:
        """Of a text, from the logits [T, V] of each of its rows."""

    def results(
        self, texts: Sequence[Any], options: Options, *, done: Callable[[int], None] = lambda count: None
    ) -> list[Result]:
        """What is said of each text. Raises RegardError for wishes that such a model cannot have."""
        self.check_given(texts)
        options.check_for(self.description.model)
        read = [Read(text, wrong=wrong) if (wrong := _flaw(text)) else self._read(text) for text in texts]
        found = {n: Result(each.text, "", 0.0, [], [], wrong=each.wrong) for n, each in enumerate(read) if each.wrong}
        order = sorted((n for n in range(len(read)) if n not in found), key=lambda n: -read[n].size)
        done(len(found))
        while order:
            some = order[: max(1, AT_ONCE // read[order[0]].size)]
            order = order[len(some) :]
            logits = iter(self._logits([row for number in some for row in read[number].rows]))
            for number in some:
                found[number] = self._outcome(read[number], [next(logits) for _ in read[number].rows])
            done(len(some))
        return [found[number] for number in range(len(texts))]

    @torch.inference_mode()
    def _logits(self, rows: Sequence[list[int]]) -> list[Tensor]:
        """Of each row [T, V]; a text of very many rows is read a few at a time."""
        model = self.bundle.model
        device = next(model.parameters()).device
        found = []
        step = max(1, AT_ONCE // max(map(len, rows)))
        for at in range(0, len(rows), step):
            some = rows[at : at + step]
            source, mask = (each.to(device) for each in given(self.source_side, some))
            logits = model.logits(model.decoder(source, model.encode(source, mask)).features)
            found += [each[: len(row)] for each, row in zip(logits, some, strict=True)]
        return found

    def attend(
        self, source: str, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> CapturedView:
        """What the words of a text attend to among themselves. Raises RegardError for what cannot be read."""
        if attribution:
            raise RegardError("attend: gradient times input is for models that write something, or tell a class.")
        if target is not None:
            raise RegardError(
                f"attend: of {self.what}, what words attend to among themselves can be seen; give one text alone."
            )
        self.check_given([source])
        wrong = _flaw(source)
        read = Read(source, wrong=wrong) if wrong else self._read(source)
        if read.wrong:
            raise RegardError(f"{source[:60]!r}: {read.wrong}.")
        told = forced(self.bundle, [read.rows[0]], [[END]], scores=False)[0]
        return captured_view((self.source_side, in_text(self.source_side)), (read.rows[0], [END]), told.weights)

    def fits(self, text: str) -> bool:
        """What is too long is said to be, or read in windows."""
        return True


def _flaw(text: str) -> str:
    return "it is not UTF-8, or has half a character (a lone surrogate)" if LONE_SURROGATE.search(text) else ""
