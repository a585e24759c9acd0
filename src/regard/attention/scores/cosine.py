"""The cosine (Graves et al. 2014, arXiv:1410.5401)."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from regard.attention import reference
from regard.attention.scores import SCORES
from regard.attention.scores.base import Score


@SCORES.register("cosine")
class Cosine(Score):
    """q·k / (|q| |k|)."""

    formula = "q·k / (|q| |k|)"
    summary = "direction only, length does not count"
    paper = "Graves, Wayne, Danihelka 2014, arXiv:1410.5401"
    use = 'attend(q, k, v, score="cosine", scale=10.0)'
    order = 3

    def queries(self, query: Tensor) -> Tensor:
        return _unit(query)

    def keys(self, key: Tensor) -> Tensor:
        return _unit(key)

    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        return reference.cosine(query, key)


def _unit(x: Tensor) -> Tensor:
    """x / |x|, a zero vector staying zero; in half precision 1e-12 would be zero itself."""
    wide = torch.promote_types(x.dtype, torch.float32)
    return normalize(x.to(wide), dim=-1).to(x.dtype)
