"""Tokens to vectors: the table, its scale, the places, and dropout."""

import math

import torch
from torch import Tensor, nn

from regard.attention import Learned, Sinusoidal
from regard.models.dropout import Dropout
from regard.tokens import SEPARATOR


class Embedding(nn.Module):
    """dropout(scale * table[token] + place).

    `position` is "sinusoidal", "learned" (for the first `positions` places), or anything else for none. `segments`:
    parts of a text, divided by SEPARATOR, each of which adds a vector of its own (Devlin et al. 2018,
    arXiv:1810.04805); with `recent` they are counted from the last one back (Sukhbaatar et al. 2015, arXiv:1503.08895).
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
        segments: int = 1,
        recent: bool = False,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        self.scale = math.sqrt(width) if scale else 1.0
        self.place: Sinusoidal | Learned | None = None
        if position == "sinusoidal":
            self.place = Sinusoidal(width)
        elif position == "learned":
            self.place = Learned(positions, width)
        self.segment = nn.Parameter(torch.zeros(segments, width)) if segments > 1 else None
        self.recent = recent
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.weight, std=width**-0.5)
        if self.segment is not None:
            nn.init.normal_(self.segment, std=width**-0.5)

    def forward(self, tokens: Tensor, *, offset: int = 0, places: Tensor | None = None) -> Tensor:
        """tokens [B, T], the first at place `offset`, or at these places [B, T] -> [B, T, width]."""
        x = nn.functional.embedding(tokens, self.weight)
        if self.scale != 1:
            x = x * self.scale
        if self.segment is not None:
            parts = (tokens == SEPARATOR).cumsum(1)
            if self.recent:
                parts = parts[:, -1:] - parts
            x = x + nn.functional.embedding(parts.clamp_max(len(self.segment) - 1), self.segment)
        if self.place is not None:
            x = self.place(x, offset=offset) if places is None else x + self.place.places(places).to(x.dtype)
        dropped: Tensor = self.dropout(x)
        return dropped

    def read(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """tokens and mask [B, T] -> [B, T, width], and the mask as it is: what every stem has."""
        return self(tokens), mask
