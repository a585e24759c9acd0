"""The dot product (Luong et al. 2015, arXiv:1508.04025)."""

from torch import Tensor

from regard.attention import reference
from regard.attention.scores import SCORES
from regard.attention.scores.base import Score


@SCORES.register("dot")
class Dot(Score):
    """q·k."""

    formula = "q·k"
    summary = "large vectors that agree"
    paper = "Luong, Pham, Manning 2015, arXiv:1508.04025"
    use = 'attend(q, k, v, score="dot")'
    order = 1

    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        return reference.dot(query, key)
