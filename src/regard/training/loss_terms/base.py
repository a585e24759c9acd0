"""What a loss term is."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from regard.training.loss import ForwardPass, Loss


class LossTerm(ABC):
    """Something added to the main loss in training. weight: how much it counts.

    needs_weights: it looks at cross-attention, which is slower to compute with its weights.
    """

    needs_weights: ClassVar[bool] = False

    def __init__(self, weight: float) -> None:
        self.weight = weight

    @abstractmethod
    def __call__(self, given: ForwardPass, loss: Loss) -> Tensor | None:
        """What is added to the total, weight included; None if the batch has nothing for this term."""
