"""The interface of loss terms."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from regard.data.batch import Batch
from regard.training.loss import ForwardPass, Loss


class LossTerm(ABC):
    """A term that is added to the main loss in training, multiplied by `weight`.

    needs_weights: it needs the weights of cross-attention, which are slower to compute.
    """

    needs_weights: ClassVar[bool] = False

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def applies_to(self, batch: Batch) -> bool:
        """Whether a batch has what the term is computed from."""
        return True

    @abstractmethod
    def __call__(self, forward: ForwardPass, loss: Loss) -> Tensor | None:
        """The weighted term; None if it does not apply to the batch."""
