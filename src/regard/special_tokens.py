"""The first entries of every vocabulary, and the characters that stand for special tokens in texts."""

from collections.abc import Sequence

PAD, UNK, BOS, EOS = 0, 1, 2, 3
MASK = 4  # in the vocabulary of a masked language model
SEPARATOR_CHARACTER = "\uf8f0"  # between the segments of a text; a private-use character
MASK_CHARACTER = "\uf8f3"  # in place of a masked token; a private-use character


def truncate(tokens: Sequence[int], max_tokens: int) -> list[int]:
    """At most `max_tokens`, truncated at the end, or at the beginning if there are segments, to keep a question and the
    text nearest to it."""
    if len(tokens) <= max_tokens:
        return list(tokens)
    return list(tokens[len(tokens) - max_tokens :] if EOS in tokens else tokens[:max_tokens])
