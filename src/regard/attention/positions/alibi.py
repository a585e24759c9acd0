"""ALiBi (Press et al. 2021, arXiv:2108.12409)."""

import math
from typing import Self

import torch
from torch import Tensor

from regard.attention.positions import POSITIONS
from regard.attention.positions.base import Position, check_heads
from regard.errors import RegardError


@POSITIONS.register("alibi")
class ALiBi(Position):
    """-m |i - j|: a penalty that grows with distance, at a slope m of each head, 2^(-8/H), 2^(-16/H), ... 2^-8."""

    formula = "s − m|i − j|"
    summary = "each head forgets with distance, at its own slope"
    paper = "Press, Smith, Lewis 2021, arXiv:2108.12409"
    use = 'Attention(width, heads=8, position="alibi")'
    order = 4
    adds_bias = True

    def __init__(self, heads: int) -> None:
        if heads < 1:
            raise RegardError(f"heads: {heads} is not a number of heads; it must be at least 1.")
        # The paper's sequence for powers of two; between them, every other slope of the next power of two is added.
        power_of_two = 2 ** int(math.log2(heads))
        self.slopes = [2 ** (-8 * (h + 1) / power_of_two) for h in range(power_of_two)]
        self.slopes += [2 ** (-4 * (2 * h + 1) / power_of_two) for h in range(heads - power_of_two)]

    def check(self, query: Tensor, value: Tensor) -> None:
        check_heads(self.name, len(self.slopes), query)

    def bias(
        self, query: Tensor, query_positions: Tensor, key_positions: Tensor, scale: float, heads: Tensor | None
    ) -> Tensor | None:
        slopes = torch.tensor(self.slopes, dtype=query.dtype, device=query.device)
        slopes = slopes if heads is None else slopes[heads]
        distance = (query_positions[:, None] - key_positions[None, :]).abs()
        return -slopes[:, None, None] * distance

    @classmethod
    def create(cls, *, heads: int, width: int, value_width: int) -> Self:
        return cls(heads)
