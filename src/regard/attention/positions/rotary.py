"""Rotary positions (Su et al. 2021, arXiv:2104.09864)."""

import math
from typing import Self

import torch
from torch import Tensor, nn

from regard.attention.positions import POSITIONS
from regard.attention.positions.base import Position, frequencies
from regard.errors import RegardError


@POSITIONS.register("rotary", aliases=("rope",))
class Rotary(nn.Module, Position):
    """Each pair (x_2i, x_2i+1) is rotated by the angle p base^(-2i / D): q·k then depends on the distance only.

    `width` is the head's; with `rotary_width` only the first so many dimensions are rotated.
    """

    formula = "turn (x₂ᵢ, x₂ᵢ₊₁) by p·θᵢ"
    summary = "queries and keys are rotated by their position"
    paper = "Su et al. 2021, arXiv:2104.09864"
    use = 'Attention(width, heads=8, position="rotary")'
    order = 3
    scores = ("dot", "scaled-dot", "cosine")

    def __init__(self, width: int, *, base: float = 10000.0, rotary_width: int | None = None) -> None:
        super().__init__()
        self.rotary_width = width if rotary_width is None else rotary_width
        if self.rotary_width % 2 or not 0 < self.rotary_width <= width:
            raise RegardError(
                f"width: rotary rotates pairs, so rotary_width must be even and at most {width}, not "
                f"{self.rotary_width}."
            )
        if not 0 < base < math.inf:
            raise RegardError(f"base: {base} is not possible; it must be above 0.")
        self.base, self.width = base, width

    def check(self, query: Tensor, value: Tensor) -> None:
        if query.shape[-1] != self.width:
            raise RegardError(f"position: rotary was made for width {self.width}, the query has {query.shape[-1]}.")

    def transform(self, x: Tensor, offset: int) -> Tensor:
        positions = torch.arange(offset, offset + x.shape[-2], device=x.device)
        angle = positions[:, None] * frequencies(self.rotary_width, self.base, x.device)
        angle = torch.stack([angle, angle], -1).flatten(-2)  # [T, rotary_width]
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        to_rotate, unchanged = x[..., : self.rotary_width], x[..., self.rotary_width :]
        # Each pair rotated by 90 degrees.
        rotated_90 = torch.stack([-to_rotate[..., 1::2], to_rotate[..., ::2]], -1).flatten(-2)
        result = to_rotate * cos + rotated_90 * sin
        return result if self.rotary_width == self.width else torch.cat([result, unchanged], -1)

    @classmethod
    def create(cls, *, heads: int, width: int, value_width: int) -> Self:
        return cls(width)
