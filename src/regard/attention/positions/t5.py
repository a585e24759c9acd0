"""T5's relative positions (Raffel et al. 2020, arXiv:1910.10683)."""

import math
from typing import Self

import torch
from torch import Tensor, nn

from regard.attention.positions import POSITIONS
from regard.attention.positions.base import Position, check_heads
from regard.errors import RegardError


@POSITIONS.register("t5", aliases=("relative-bias",))
class T5(nn.Module, Position):
    """A learned number for each head and bucket of j - i: one a distance when near, logarithmically wider when far.

    `bidirectional=False`, for causal attention, spends all buckets on the past.
    """

    formula = "s + b[bucket(j − i)]"
    summary = "a learned number for each head and bucket of distances"
    paper = "Raffel et al. 2020, arXiv:1910.10683"
    use = 'Attention(width, heads=8, position="t5")'
    constructor = "T5(heads)"
    order = 6
    adds_bias = True
    learns = True

    def __init__(self, heads: int, *, buckets: int = 32, max_distance: int = 128, bidirectional: bool = True) -> None:
        super().__init__()
        min_buckets = 4 if bidirectional else 2
        if buckets < min_buckets or buckets % 2:
            raise RegardError(f"buckets: {buckets} is not possible; it must be even and at least {min_buckets}.")
        if max_distance <= buckets // (4 if bidirectional else 2):
            raise RegardError(
                f"max_distance: {max_distance} is nearer than the positions with a bucket of their own; make it larger."
            )
        self.buckets, self.max_distance, self.bidirectional = buckets, max_distance, bidirectional
        self.table = nn.Parameter(torch.empty(heads, buckets).normal_(std=0.02))

    def check(self, query: Tensor, value: Tensor) -> None:
        check_heads(self.name, len(self.table), query)

    def bucket(self, distance: Tensor) -> Tensor:
        """Integer distances j - i -> bucket numbers."""
        buckets, first = self.buckets, torch.zeros_like(distance)
        if self.bidirectional:
            buckets //= 2
            first, distance = (distance > 0).long() * buckets, distance.abs()
        else:
            distance = (-distance).clamp_min(0)
        exact = buckets // 2
        dtype = torch.float32 if distance.device.type == "mps" else torch.float64
        ratio = (distance.to(dtype) / exact).clamp_min(1).log() / math.log(self.max_distance / exact)
        far = (exact + (ratio * (buckets - exact)).long()).clamp_max(buckets - 1)
        return first + torch.where(distance < exact, distance, far)

    def bias(
        self, query: Tensor, query_positions: Tensor, key_positions: Tensor, scale: float, heads: Tensor | None
    ) -> Tensor | None:
        table = self.table if heads is None else self.table[heads]
        return table.to(query.dtype)[:, self.bucket(key_positions[None, :] - query_positions[:, None])]

    @classmethod
    def create(cls, *, heads: int, width: int, value_width: int) -> Self:
        return cls(heads)
