"""Answers that are spans of a passage: tokens and their characters, and windows over long passages.

The source is the question, a separator, then the passage, as in BERT for SQuAD (Devlin et al. 2018, arXiv:1810.04805,
section 4.2). Users write the passage first, then the question.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.data.segments import add_special_tokens, max_content_tokens
from regard.models.settings import SourceSettings
from regard.special_tokens import EOS, SEPARATOR_CHARACTER

if TYPE_CHECKING:
    from regard.data.tokenizers.tokenizer import SubwordTokenizer

MAX_QUESTION_SHARE = 0.5  # of a window; a longer question is truncated
OVERLAP_DIVISOR = 3  # windows overlap by one token in this many
NO_QUESTION = "it has no question; write the passage, a tab, and the question"


@dataclass(frozen=True)
class Window:
    """A question with as much of its passage as the model reads at once."""

    tokens: list[int]  # without the special tokens around the source
    passage_start: int  # the position of the passage's first token in the source
    offsets: list[tuple[int, int]]  # the characters of each passage token: start and end

    def token_span(self, start: int, end: int) -> tuple[int, int] | None:
        """The positions of the first and the last token of these characters; None if the window has not all of them."""
        if not self.offsets or start < self.offsets[0][0] or end > self.offsets[-1][1]:
            return None
        inside = [at for at, (left, right) in enumerate(self.offsets) if right > start and left < end and left < right]
        return (self.passage_start + inside[0], self.passage_start + inside[-1]) if inside else None

    def char_span(self, first: int, last: int) -> tuple[int, int]:
        """The characters of the passage from the token at one position to the token at another."""
        return self.offsets[first - self.passage_start][0], self.offsets[last - self.passage_start][1]


def split_question(text: str) -> tuple[str, str]:
    """Passage and question."""
    passage, *rest = text.replace(SEPARATOR_CHARACTER, "\t").split("\t")
    return passage.strip(), " ".join(segment.strip() for segment in rest).strip()


def passage_windows(
    passage: str, question: str, tokenizer: "SubwordTokenizer", source: SourceSettings, max_tokens: int
) -> list[Window]:
    """A passage as one window, or as several that overlap, of at most `max_tokens` tokens including special tokens."""
    separators = source.segment_separators
    max_content = max_content_tokens(source, max_tokens) - separators
    (question_tokens,) = tokenizer.encode([question])
    question_tokens = question_tokens[: int(max_content * MAX_QUESTION_SHARE)]
    tokens, offsets = tokenizer.offsets(passage)
    passage_start = len(add_special_tokens([], source)) - 1 + len(question_tokens) + separators
    size = max(1, max_content - len(question_tokens))
    stride = max(1, size - size // OVERLAP_DIVISOR)
    starts = range(0, max(1, len(tokens) - size // OVERLAP_DIVISOR), stride)
    prefix = [*question_tokens, *[EOS] * separators]
    return [Window([*prefix, *tokens[at : at + size]], passage_start, offsets[at : at + size]) for at in starts]


def find_occurrences(passage: str, answer: str) -> Iterator[int]:
    """The character at which each occurrence of an answer in a passage begins."""
    at = passage.find(answer)
    while at >= 0:
        yield at
        at = passage.find(answer, at + 1)


def occurrence_index(passage: str, answer: str, start: int) -> int:
    """The index of the last occurrence of an answer that begins at a character or before it; 0 if there is none."""
    return max(0, sum(at <= start for at in find_occurrences(passage, answer)) - 1)


def encode_span_example(
    text: str, answer: str, occurrence: int, tokenizer: "SubwordTokenizer", source: SourceSettings, max_tokens: int
) -> tuple[list[int], tuple[int, int]] | str:
    """The source tokens, and the answer's first and last position; or why the example cannot be used.

    Both positions are 0 if there is no answer.
    """
    passage, question = split_question(text)
    if not question or not passage:
        return "no question" if passage else "no passage"
    windows = passage_windows(passage, question, tokenizer, source, max_tokens)
    if not answer:
        return windows[0].tokens, (0, 0)
    starts = list(find_occurrences(passage, answer))
    if not starts:
        return "an answer that is not in its passage"
    start = starts[min(occurrence, len(starts) - 1)]
    for window in windows:
        if span := window.token_span(start, start + len(answer)):
            return window.tokens, span
    return "an answer longer than what is read at once"
