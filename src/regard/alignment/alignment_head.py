"""The layer and head of cross-attention that align best. Imports no PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float32]


@dataclass(frozen=True)
class AlignmentHead:
    """Where a model's alignment is seen best: a layer and a head of attention to the source, from 0; no head for the
    mean of all. shifted: in the row of the step that has just read the word, not of the one that writes it."""

    layer: int
    head: int | None = None
    shifted: bool = False
    guessed: bool = False  # where one looks if nothing is known of a model

    def of(self, layers: Sequence[Weights]) -> Weights:
        """[target, source] of the weights [heads, target, source] of each layer, ends included."""
        layer = layers[self.layer]
        found = layer.mean(0) if self.head is None else layer[self.head]
        # The end is read by nobody: it keeps the row that writes it.
        return np.concatenate([found[1:], found[-1:]]) if self.shifted else found

    @staticmethod
    def default(layers: Sequence[Weights]) -> "AlignmentHead":
        """Where to look if nothing is known of a model: the last layer but one (Garg et al. 2019, arXiv:1909.02074)."""
        only = len(layers) == 1 and len(layers[0]) == 1  # of which nothing need be known
        return AlignmentHead(max(0, len(layers) - 2), guessed=not only)
