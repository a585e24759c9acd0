"""The first four entries of every vocabulary, and the one after them where sources have parts."""

from collections.abc import Sequence

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
SEPARATOR = 4  # between the parts of a source, such as a story and a question
SEPARATOR_SIGN = "\uf8f0"  # what it looks like in a text: nothing that people write


def shortened(tokens: Sequence[int], most: int, *, parted: bool) -> list[int]:
    """At most so many, cut at the end; where there are parts, at the beginning: a question and what is nearest to it
    stay."""
    if len(tokens) <= most:
        return list(tokens)
    return list(tokens[-most:] if parted and most and SEPARATOR in tokens else tokens[:most])
