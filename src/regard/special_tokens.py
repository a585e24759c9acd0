"""The first entries of every vocabulary, and what stands in texts for some of them."""

from collections.abc import Sequence

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
MASK = 4  # what is to be guessed, in the vocabulary of a model that learns by guessing
SEPARATOR_SIGN = "\uf8f0"  # in a text, where one of its parts ends: nothing that people write
MASK_SIGN = "\uf8f3"  # in a text, what is to be guessed


def shortened(tokens: Sequence[int], most: int) -> list[int]:
    """At most so many, cut at the end; where there are parts, at the beginning: a question and what is nearest to it
    stay."""
    if len(tokens) <= most:
        return list(tokens)
    return list(tokens[len(tokens) - most :] if END in tokens else tokens[:most])
