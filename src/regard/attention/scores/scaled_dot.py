"""The scaled dot product (Vaswani et al. 2017, arXiv:1706.03762)."""

import math

from torch import Tensor

from regard.attention import reference
from regard.attention.scores import SCORES
from regard.attention.scores.base import Score


@SCORES.register("scaled-dot", aliases=("scaled",))
class ScaledDot(Score):
    """q·k / sqrt(D)."""

    formula = "q·k / √D"
    summary = "dot, kept at unit variance whatever the width"
    paper = "Vaswani et al. 2017, arXiv:1706.03762"
    use = "attend(q, k, v)"
    order = 2

    def default_scale(self, width: int) -> float:
        return 1 / math.sqrt(width) if width else 1.0

    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        return reference.dot(query, key)  # the caller multiplies by the scale
