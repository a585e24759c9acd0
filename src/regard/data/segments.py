"""Text sources in segments, such as a story and a question, or the sentences of a text: separated, and tokenized."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from regard.data.sentence_splitting import split_sentences
from regard.models.settings import SourceSettings
from regard.special_tokens import BOS, EOS, SEPARATOR_CHARACTER, UNK, truncate

if TYPE_CHECKING:
    from regard.data.tokenizers.tokenizer import SubwordTokenizer

SEGMENT_SEPARATOR = f" {SEPARATOR_CHARACTER} "
Encode = Callable[[Sequence[str]], list[list[int]]]  # texts to tokens


def has_segments(source: SourceSettings) -> bool:
    """Whether a model has segment embeddings for its source."""
    return source.segments_of_text > 1


def separate_segments(text: str, source: SourceSettings) -> str:
    """A text with separators between its segments, which users separate by tabs.

    Unchanged where a model has no segment embeddings.
    """
    if not has_segments(source):
        return text
    segments = text.replace(SEPARATOR_CHARACTER, "\t").split("\t")
    if source.splits_sentences:
        segments = [sentence for segment in segments for sentence, _ in split_sentences(segment.strip())]
    return SEGMENT_SEPARATOR.join(segment.strip() for segment in segments)


def encode_segments(texts: Sequence[str], source: SourceSettings, encode: Encode) -> list[list[int]]:
    """Tokens of each text, with end tokens between its segments, as in BERT (Devlin et al. 2018, arXiv:1810.04805)."""
    if not has_segments(source):
        return encode(texts)
    segments = [separate_segments(text, source).split(SEPARATOR_CHARACTER) for text in texts]
    flat = iter(encode([segment.strip() for each in segments for segment in each]))
    sequences = []
    for each in segments:
        tokens = next(flat)
        for _ in each[1:]:
            tokens = [*tokens, *[EOS] * source.segment_separators, *next(flat)]
        sequences.append(tokens)
    return sequences


def encode_words(texts: Sequence[str], tokenizer: "SubwordTokenizer") -> tuple[list[list[int]], list[list[int]]]:
    """Tokens of each text, tokenized word by word, and the position of each word's first token.

    A word without tokens becomes the unknown token.
    """
    words = [text.split() for text in texts]
    prefix = " " if tokenizer.keeps_whitespace else ""  # where the space before a word is part of its token
    flat = iter(tokenizer.encode([(prefix if at else "") + word for each in words for at, word in enumerate(each)]))
    tokens: list[list[int]] = []
    first_tokens: list[list[int]] = []
    for each in words:
        tokens.append([])
        first_tokens.append([])
        for _ in each:
            first_tokens[-1].append(len(tokens[-1]))
            tokens[-1] += next(flat) or [UNK]
    return tokens, first_tokens


def add_special_tokens(tokens: Sequence[int], source: SourceSettings, max_tokens: int | None = None) -> list[int]:
    """A source with its begin token, if the model has one, and its end token; shortened to `max_tokens` in all."""
    bos = [BOS] if source.starts_with_bos else []
    content = tokens if max_tokens is None else truncate(tokens, max_content_tokens(source, max_tokens))
    return [*bos, *content, EOS]


def max_content_tokens(source: SourceSettings, max_tokens: int) -> int:
    """How many tokens of a source of at most `max_tokens` are not special tokens."""
    return max(0, max_tokens - 1 - source.starts_with_bos)
