"""The part of a passage that answers a question, as it stands there."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.data.answer_spans import NO_QUESTION, Window, divided, windows
from regard.data.input_validation import normalize_whitespace
from regard.data.labels import Ends
from regard.data.segments import framed
from regard.data.vocabulary import in_text
from regard.errors import RegardError
from regard.inference.per_position import Placewise, Read
from regard.inference.results import Result
from regard.special_tokens import END

LONGEST = 30  # tokens of an answer at most, as is usual for SQuAD


@dataclass(frozen=True)
class Answer:
    """A part of a passage, and where it lies in it, from and up to; nothing if the passage has no answer."""

    text: str
    probability: float
    begin: int
    end: int


@dataclass(frozen=True)
class _Found:
    """The best span of one window."""

    score: float
    log_probability: float
    row: int
    first: int
    last: int


class Answerer(Placewise):
    """A model that says where in a passage the answer to a question stands."""

    what = "spans"

    def answer(self, passage: str, question: str) -> Answer:
        """The answer to a question about a passage. Raises RegardError for what cannot be read."""
        text = f"{normalize_whitespace(passage)}\t{normalize_whitespace(question)}"
        read = self._read(text)
        if read.wrong:
            raise RegardError(f"{text[:60]!r}: {read.wrong}.")
        best = self._best(read, self._logits(read.rows))
        begin, end = self._lies(read, best)
        return Answer(
            normalize_whitespace(passage)[begin:end], float(torch.tensor(best.log_probability).exp()), begin, end
        )

    def _read(self, text: str) -> Read:
        passage, question = (normalize_whitespace(part) for part in divided(text))
        if not passage:
            return Read(text, wrong="it is empty")
        if not question:
            return Read(text, wrong=NO_QUESTION)
        source = self.description.model.source
        cased = self.cased(passage)
        found = windows(cased, self.cased(question), in_text(self.source_side), source, self.longest)
        # Lower case may be longer than what it is of: then the answer is cut out of that.
        shown = passage if len(cased) == len(passage) else cased
        return Read(text, [framed(each.tokens, source) for each in found], (found, shown))

    def _best(self, read: Read, logits: Sequence[Tensor]) -> _Found:
        """The likeliest span of all windows, or none: its first and last place are the mark's then."""
        found = [
            _span(window, row, scores) for row, (window, scores) in enumerate(zip(read.about[0], logits, strict=True))
        ]
        best = max(found, key=lambda each: each.score)
        if isinstance(self.target_side, Ends) and self.target_side.unanswered:
            none = min((_nothing(scores) for scores in logits), key=lambda each: each.score)
            return none if none.score > best.score else best
        return best

    def _lies(self, read: Read, best: _Found) -> tuple[int, int]:
        lies: tuple[int, int] = read.about[0][best.row].lies(best.first, best.last) if best.first else (0, 0)
        return lies

    def _outcome(self, read: Read, logits: Sequence[Tensor]) -> Result:
        best = self._best(read, logits)
        begin, end = self._lies(read, best)
        row = read.rows[best.row]
        tokens = row[best.first : best.last + 1] if best.first else []
        return Result(read.text, read.about[1][begin:end], best.log_probability, row, tokens)


def _span(window: Window, row: int, scores: Tensor) -> _Found:
    """The best of a window: the last place not before the first, and at most LONGEST places on."""
    count = len(window.offsets)
    first, last = scores[:, END + 1].double(), scores[:, END + 2].double()
    here = slice(window.first, window.first + count)
    sums = first[here, None] + last[None, here]
    inside = torch.ones_like(sums, dtype=torch.bool).triu().tril(LONGEST - 1)
    empty = torch.tensor([left >= right for left, right in window.offsets], device=sums.device)
    best = int(sums.masked_fill(~inside | empty[:, None] | empty, -torch.inf).argmax())
    a, b = best // count, best % count
    logs = first.log_softmax(0)[window.first + a] + last.log_softmax(0)[window.first + b]
    return _Found(float(sums[a, b]), float(logs), row, window.first + a, window.first + b)


def _nothing(scores: Tensor) -> _Found:
    """That there is no answer, told at the mark."""
    first, last = scores[:, END + 1].double(), scores[:, END + 2].double()
    logs = first.log_softmax(0)[0] + last.log_softmax(0)[0]
    return _Found(float(first[0] + last[0]), float(logs), 0, 0, 0)
