"""The bilinear score, Luong's "general" (Luong et al. 2015, arXiv:1508.04025)."""

import math

import torch
from torch import Tensor, nn

from regard.attention import reference
from regard.attention.scores import SCORES
from regard.attention.scores.base import LearnedScore, per_head


@SCORES.register("bilinear", aliases=("general",))
class Bilinear(LearnedScore):
    """q' W k, one W a head [H, Dq, Dk]. The same as a dot product of W'q with k, which is how it runs."""

    formula = "qᵀ W k"
    summary = "a learned product between two spaces"
    paper = "Luong, Pham, Manning 2015, arXiv:1508.04025"
    use = 'Attention(width, key_width=source_width, score="bilinear")'
    order = 4

    def __init__(self, query_width: int, key_width: int, *, heads: int = 1) -> None:
        super().__init__(query_width, key_width, heads)
        self.weight = nn.Parameter(torch.empty(heads, query_width, key_width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform, so that unit-variance queries and keys give scores of about unit variance."""
        bound = math.sqrt(3 / (self.query_width * self.key_width))
        nn.init.uniform_(self.weight, -bound, bound)

    def queries(self, query: Tensor) -> Tensor:
        return per_head(query, self.weight.transpose(-2, -1))

    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        return reference.bilinear(query, key, self.weight)
