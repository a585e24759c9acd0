"""The layer and head of cross-attention that word alignments are taken from. Imports no PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float32]


@dataclass(frozen=True)
class AlignmentHead:
    """The layer and head of cross-attention that align best, from 0; head None: the mean of the layer's heads.

    shifted: a target token's row is that of the step that has it as input, not of the step that predicts it.
    is_default: the default, as nothing is known of the model. The fields are stored with captured attention.
    """

    layer: int
    head: int | None = None
    shifted: bool = False
    is_default: bool = False

    def select(self, layers: Sequence[Weights]) -> Weights:
        """This head's weights [Tt, Ts], from [H, Tt, Ts] of each layer, with the end-of-sequence tokens."""
        layer = layers[self.layer]
        weights = layer.mean(0) if self.head is None else layer[self.head]
        # The end-of-sequence token is never an input, so it keeps the row that predicts it.
        return np.concatenate([weights[1:], weights[-1:]]) if self.shifted else weights

    @staticmethod
    def default(layers: Sequence[Weights]) -> "AlignmentHead":
        """If nothing is known of a model: the mean of the last layer but one (Garg et al. 2019, arXiv:1909.02074)."""
        is_only_head = len(layers) == 1 and len(layers[0]) == 1
        return AlignmentHead(max(0, len(layers) - 2), is_default=not is_only_head)
