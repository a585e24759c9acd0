"""Which source word a target word comes from, by attention. Imports no PyTorch."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SPACE = "▁"


def words_of(pieces: Sequence[str]) -> list[int]:
    """The number of the word that each piece is part of."""
    numbers: list[int] = []
    for piece in pieces:
        begins = piece.startswith(SPACE) or not numbers
        numbers.append((numbers[-1] if numbers else -1) + begins)
    return numbers


def word_alignment(
    attention: Sequence[NDArray[np.float32]], source: Sequence[str], target: Sequence[str]
) -> list[tuple[int, int]]:
    """(source word, target word), from 0, by target word.

    attention: [H, Tt, Ts] of each layer, over these pieces, both with their ends. The last layer but one says best
    where a word comes from (Garg et al. 2019, arXiv:1909.02074); its heads are averaged, a word's pieces summed.
    """
    if not attention or len(source) < 2 or len(target) < 2:
        return []
    weights = attention[max(0, len(attention) - 2)].mean(0)[:-1, :-1]  # without the ends
    rows, columns = words_of(target[:-1]), words_of(source[:-1])
    together = np.zeros((rows[-1] + 1, columns[-1] + 1))
    np.add.at(together, (np.array(rows)[:, None], np.array(columns)[None, :]), weights)
    return [(int(row.argmax()), word) for word, row in enumerate(together)]


def pharaoh(links: Sequence[tuple[int, int]]) -> str:
    """As in 0-0 1-2: source-target."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))
