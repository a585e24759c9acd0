"""The interface of loss terms."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from regard.training.loss import ForwardPass, Loss


class LossTerm(ABC):
    """A term that is added to the main loss in training, multiplied by `weight`.

    needs_weights: it needs the weights of cross-attention, which are slower to compute.
    """

    needs_weights: ClassVar[bool] = False

    def __init__(self, weight: float) -> None:
        self.weight = weight

    @abstractmethod
    def __call__(self, forward: ForwardPass, loss: Loss) -> Tensor | None:
        """The weighted term; None if it does not apply to the batch."""
