"""Relative positions (Shaw et al. 2018, arXiv:1803.02155)."""

from typing import Self

import torch
from torch import Tensor, nn

from regard.attention.kernels.grouped_query import grouped_matmul
from regard.attention.positions import POSITIONS
from regard.attention.positions.base import Position
from regard.errors import RegardError


@POSITIONS.register("shaw", aliases=("relative",))
class Shaw(nn.Module, Position):
    """A learned vector for each distance up to `max_distance`, added to the key and (with `value_width`) to the value.

    Shared by all heads, as in the paper. q·a is computed once per query and distance, then looked up: nothing of
    size [Tq, Tk, D] is stored.
    """

    formula = "q·(k + a_{j−i}), Σ w (v + a'_{j−i})"
    summary = "a learned vector for each clipped distance"
    paper = "Shaw, Uszkoreit, Vaswani 2018, arXiv:1803.02155"
    use = 'Attention(width, heads=8, position="shaw")'
    constructor = "Shaw(width)"
    order = 5
    adds_bias = True
    may_add_values = True
    learns = True
    scores = ("dot", "scaled-dot")

    def __init__(self, width: int, *, max_distance: int = 16, value_width: int | None = None) -> None:
        super().__init__()
        if max_distance < 0:
            raise RegardError(f"max_distance: {max_distance} is not a distance; it must be 0 or more.")
        self.max_distance = max_distance
        self.keys = nn.Parameter(torch.empty(2 * max_distance + 1, width).normal_(std=0.02))
        self.value_table = (
            nn.Parameter(torch.empty(2 * max_distance + 1, value_width).normal_(std=0.02)) if value_width else None
        )

    def check(self, query: Tensor, value: Tensor) -> None:
        if query.shape[-1] != self.keys.shape[1]:
            raise RegardError(
                f"position: shaw was made for width {self.keys.shape[1]}, the query has {query.shape[-1]}."
            )
        if self.value_table is not None and value.shape[-1] != self.value_table.shape[1]:
            width = self.value_table.shape[1]
            raise RegardError(f"position: shaw was made for values of width {width}, these have {value.shape[-1]}.")

    @property
    def adds_values(self) -> bool:
        return self.value_table is not None

    def _distance(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        return (key_positions[None, :] - query_positions[:, None]).clamp(
            -self.max_distance, self.max_distance
        ) + self.max_distance

    def bias(
        self, query: Tensor, query_positions: Tensor, key_positions: Tensor, scale: float, heads: Tensor | None
    ) -> Tensor | None:
        by_distance = grouped_matmul(
            query, self.keys.t()[None, None].expand(len(query), 1, -1, -1)
        )  # [B, H, Tq, 2c + 1]
        index = self._distance(query_positions, key_positions).expand(*query.shape[:2], -1, -1)
        return by_distance.gather(-1, index) * scale

    def values(self, weights: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        assert self.value_table is not None
        index = self._distance(query_positions, key_positions).expand_as(weights)
        by_distance = weights.new_zeros(*weights.shape[:-1], 2 * self.max_distance + 1).scatter_add(-1, index, weights)
        return by_distance @ self.value_table

    @classmethod
    def create(cls, *, heads: int, width: int, value_width: int) -> Self:
        return cls(width, value_width=value_width)
