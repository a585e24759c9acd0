"""Tokens to vectors: the table, its scale, the places, and dropout."""

import math

import torch
from torch import Tensor, nn

from regard.attention import Learned, Sinusoidal
from regard.models.dropout import Dropout


class Embedding(nn.Module):
    """dropout(scale * table[token] + place).

    `position` is "sinusoidal", "learned" (for the first `positions` places), or anything else for none.
    """

    def __init__(
        self,
        vocabulary: int,
        width: int,
        *,
        scale: bool = False,
        position: str = "none",
        positions: int = 1024,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        self.scale = math.sqrt(width) if scale else 1.0
        self.place: Sinusoidal | Learned | None = None
        if position == "sinusoidal":
            self.place = Sinusoidal(width)
        elif position == "learned":
            self.place = Learned(positions, width)
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, tokens: Tensor, *, offset: int = 0) -> Tensor:
        """tokens [B, T], the first at place `offset` -> [B, T, width]."""
        x = nn.functional.embedding(tokens, self.weight)
        if self.scale != 1:
            x = x * self.scale
        if self.place is not None:
            x = self.place(x, offset=offset)
        dropped: Tensor = self.dropout(x)
        return dropped
