"""A score: keys near the query fit best."""

import torch
from torch import Tensor

from regard.attention.kernels.grouped_query import repeat_heads
from regard.attention.scores import SCORES
from regard.attention.scores.base import Score


@SCORES.register("negative-distance")
class NegativeDistance(Score):
    """-|q - k|."""

    formula = "−|q − k|"
    summary = "keys near the query fit best"
    paper = "Kim, Papamakarios, Mnih 2021, arXiv:2006.04710"
    use = 'attend(q, k, v, score="negative-distance")'

    def pairs(self, query: Tensor, key: Tensor, heads: Tensor | None = None) -> Tensor:
        return -torch.cdist(query, repeat_heads(key, query.shape[1]))

    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        return -(query[..., :, None, :] - key[..., None, :, :]).norm(dim=-1)
