"""A source from text to tokens: its parts, such as a story and a question, or sentence after sentence, each ended."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from regard.data.sentence_splitting import split_sentences
from regard.models.settings import SourceSettings
from regard.special_tokens import BEGIN, END, SEPARATOR_SIGN, UNKNOWN, shortened

if TYPE_CHECKING:
    from regard.data.tokenizers.tokenizer import SubwordTokenizer

BETWEEN = f" {SEPARATOR_SIGN} "
Cut = Callable[[Sequence[str]], list[list[int]]]  # texts to tokens


def has_parts(source: SourceSettings) -> bool:
    """Whether a model tells the parts of what it reads apart."""
    return source.segments_of_text > 1


def parted(text: str, source: SourceSettings) -> str:
    """With marks between its parts, which are divided by tabs where people write them; as it is where a model does not
    tell them apart."""
    if not has_parts(source):
        return text
    parts = text.replace(SEPARATOR_SIGN, "\t").split("\t")
    if source.splits_sentences:
        parts = [sentence for part in parts for sentence, _ in split_sentences(part.strip())]
    return BETWEEN.join(part.strip() for part in parts)


def encoded(texts: Sequence[str], source: SourceSettings, cut: Cut) -> list[list[int]]:
    """Tokens of each text, with an end between its parts, as BERT has them (Devlin et al. 2018, arXiv:1810.04805)."""
    if not has_parts(source):
        return cut(texts)
    parts = [parted(text, source).split(SEPARATOR_SIGN) for text in texts]
    flat = iter(cut([part.strip() for each in parts for part in each]))
    found = []
    for each in parts:
        tokens = next(flat)
        for _ in each[1:]:
            tokens = [*tokens, *[END] * source.segment_separators, *next(flat)]
        found.append(tokens)
    return found


def by_words(texts: Sequence[str], subwords: "SubwordTokenizer") -> tuple[list[list[int]], list[list[int]]]:
    """Tokens of each text, cut word by word, and where each word's first one stands. A word of which nothing is left
    has an unknown one."""
    words = [text.split() for text in texts]
    before = " " if subwords.keeps_whitespace else ""  # where a blank is part of the word that it goes before
    flat = iter(subwords.encode([(before if at else "") + word for each in words for at, word in enumerate(each)]))
    tokens: list[list[int]] = []
    firsts: list[list[int]] = []
    for each in words:
        tokens.append([])
        firsts.append([])
        for _ in each:
            firsts[-1].append(len(tokens[-1]))
            tokens[-1] += next(flat) or [UNKNOWN]
    return tokens, firsts


def framed(tokens: Sequence[int], source: SourceSettings, most: int | None = None) -> list[int]:
    """Between its marks, as a model reads it: at most so many with them."""
    begin = [BEGIN] if source.starts_with_bos else []
    return [*begin, *(tokens if most is None else shortened(tokens, room(source, most))), END]


def room(source: SourceSettings, most: int) -> int:
    """How many tokens find room between the marks of a source of so many."""
    return max(0, most - 1 - source.starts_with_bos)
