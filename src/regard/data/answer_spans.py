"""Answers that stand in what is read: where a passage's tokens lie in its text, and windows over long passages.

A source is read as BERT reads it for SQuAD (Devlin et al. 2018, arXiv:1810.04805, section 4.2): the question, its end,
then the passage. People write the passage first, then the question.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.data.segments import framed, room
from regard.models.settings import SourceSettings
from regard.special_tokens import END, SEPARATOR_SIGN

if TYPE_CHECKING:
    from regard.data.tokenizers.tokenizer import SubwordTokenizer

MOST_OF_IT = 0.5  # of a window that the question may have; the rest of a longer one is not read
OVERLAP = 3  # one in so many tokens of a passage's window is in the next one, too
NO_QUESTION = "it has no question; write the passage, a tab, and the question"


@dataclass(frozen=True)
class Window:
    """A question with as much of its passage as is read at once."""

    tokens: list[int]  # what stands between the marks of a source
    first: int  # the place of the passage's first token in the source
    offsets: list[tuple[int, int]]  # where each token of the passage lies in its text, from and up to

    def place(self, begin: int, end: int) -> tuple[int, int] | None:
        """The places of the first and the last token of what lies there in the text; None if it is not all here."""
        if not self.offsets or begin < self.offsets[0][0] or end > self.offsets[-1][1]:
            return None
        inside = [at for at, (left, right) in enumerate(self.offsets) if right > begin and left < end and left < right]
        return (self.first + inside[0], self.first + inside[-1]) if inside else None

    def lies(self, first: int, last: int) -> tuple[int, int]:
        """Where the text of these places lies in the passage."""
        return self.offsets[first - self.first][0], self.offsets[last - self.first][1]


def divided(text: str) -> tuple[str, str]:
    """Passage and question."""
    passage, *others = text.replace(SEPARATOR_SIGN, "\t").split("\t")
    return passage.strip(), " ".join(other.strip() for other in others).strip()


def windows(
    passage: str, question: str, subwords: "SubwordTokenizer", source: SourceSettings, longest: int
) -> list[Window]:
    """All that is read of a passage: one window, or several that overlap, of so many tokens with their marks."""
    marks = source.segment_separators
    most = room(source, longest) - marks
    (asked,) = subwords.encode([question])
    asked = asked[: int(most * MOST_OF_IT)]
    tokens, offsets = subwords.offsets(passage)
    before = len(framed([], source)) - 1 + len(asked) + marks
    size = max(1, most - len(asked))
    starts = range(0, max(1, len(tokens) - size // OVERLAP), max(1, size - size // OVERLAP))
    return [Window([*asked, *[END] * marks, *tokens[at : at + size]], before, offsets[at : at + size]) for at in starts]


def occurrences(passage: str, answer: str) -> Iterator[int]:
    """Where an answer begins in a passage, each time that it stands there."""
    at = passage.find(answer)
    while at >= 0:
        yield at
        at = passage.find(answer, at + 1)


def which_occurrence(passage: str, answer: str, start: int) -> int:
    """Which of an answer's occurrences the one is that begins at a letter, or just before it; the first, from 0, if
    none is."""
    return max(0, sum(at <= start for at in occurrences(passage, answer)) - 1)


def example_of(
    text: str, answer: str, which: int, subwords: "SubwordTokenizer", source: SourceSettings, longest: int
) -> tuple[list[int], tuple[int, int]] | str:
    """What is read, and the places of the answer in it, or of the first mark if there is none; or what is wrong."""
    passage, question = divided(text)
    if not question or not passage:
        return "no question" if passage else "no passage"
    found = windows(passage, question, subwords, source, longest)
    if not answer:
        return found[0].tokens, (0, 0)
    begins = list(occurrences(passage, answer))
    if not begins:
        return "an answer that is not in its passage"
    begin = begins[min(which, len(begins) - 1)]
    for window in found:
        if places := window.place(begin, begin + len(answer)):
            return window.tokens, places
    return "an answer longer than what is read at once"
