"""The location-aware score (Chorowski et al. 2015, arXiv:1506.07503); coverage (See et al. 2017, arXiv:1704.04368)."""

import math
from typing import Self

import torch
from torch import Tensor, nn

from regard.attention.scores import SCORES
from regard.attention.scores.additive import Additive
from regard.errors import RegardError


@SCORES.register("location", aliases=("location-aware", "coverage"))
class Location(Additive):
    """v' tanh(U q + W k + F f + b): additive, with features f of the past weights; queries one by one.

    filters, size: how many, and over how many keys, an odd number. coverage: f is of the sum of all past weights,
    not of the last ones alone. `Attention` passes the weights from query to query.
    """

    formula = "vᵀ tanh(W k + U q + F f + b), f = filters * the weights before"
    summary = (
        "additive, and it sees where it attended before: speech, where one moves on; coverage, the sum of all weights"
    )
    paper = "Chorowski et al. 2015, arXiv:1506.07503; See, Liu, Manning 2017, arXiv:1704.04368"
    use = 'Attention(width, key_width=source_width, score="location")'
    order = 6
    sequential = True

    def __init__(
        self,
        query_width: int,
        key_width: int,
        width: int | None = None,
        *,
        heads: int = 1,
        filters: int = 16,
        size: int = 15,
        coverage: bool = False,
    ) -> None:
        if filters < 1:
            raise RegardError(f"filters: {filters} is not possible; there must be at least 1.")
        if size < 1 or size % 2 == 0:
            raise RegardError(f"size: {size} is not possible; a filter's width must be odd, so that it has a middle.")
        super().__init__(query_width, key_width, width, heads=heads)
        self.coverage = coverage
        self.filters = nn.Parameter(torch.empty(filters, size))
        self.weight_filter = nn.Parameter(torch.empty(heads, self.width, filters))  # F
        for weight in (self.filters, self.weight_filter):
            bound = 1 / math.sqrt(weight.shape[-1])
            nn.init.uniform_(weight, -bound, bound)

    def keys_after(self, key: Tensor, past_weights: Tensor) -> Tensor:
        """Key features [B, H, Tk, A] and past weights [B, H, Tk] -> key features for the next query."""
        count, size = self.filters.shape
        flat = nn.functional.conv1d(past_weights.flatten(0, 1)[:, None], self.filters[:, None], padding=size // 2)
        features = flat.view(*past_weights.shape[:2], count, -1).transpose(2, 3)  # [B, H, Tk, F]
        return key + features @ self.weight_filter.transpose(-2, -1)

    def past_weights(self, weights: Tensor, before: Tensor) -> Tensor:
        return weights + before if self.coverage else weights

    @classmethod
    def create(cls, *, query_width: int, key_width: int, head_width: int, heads: int, key_heads: int) -> Self:
        return cls(query_width, key_width, head_width, heads=heads)

    def check(self, query: Tensor, key: Tensor) -> None:
        raise RegardError(
            "score: a location score needs the weights of the step before; use layer = "
            "Attention(width, score='location'), and layer(query, key)."
        )
