"""Sinusoidal positions (Vaswani et al. 2017, arXiv:1706.03762, section 3.5)."""

import torch
from torch import Tensor

from regard.attention.positions import POSITIONS
from regard.attention.positions.base import PositionEmbedding, frequencies


@POSITIONS.register("sinusoidal")
class Sinusoidal(PositionEmbedding):
    """Waves of many lengths: position p + k is a fixed rotation of position p, for any length; no weights."""

    formula = "sin, cos(p / 10000^(2i/D))"
    summary = "waves of many lengths, joined to the embedding"
    paper = "Vaswani et al. 2017, arXiv:1706.03762"
    use = 'Sinusoidal(width)(x)  # or Sinusoidal(16, combine="concatenate")(x)'
    order = 1
    embeds = True

    @classmethod
    def create_embedding(cls, width: int, length: int) -> "Sinusoidal":
        return cls(width)

    def __init__(self, width: int, *, combine: str = "add") -> None:
        super().__init__(width, combine)

    def embed(self, positions: Tensor) -> Tensor:
        angle = positions[..., None] * frequencies(self.width, 10000.0, positions.device)  # [..., width / 2]
        vectors = torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)[..., : self.width]
        return vectors
