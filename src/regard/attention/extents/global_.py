"""Global attention: every key."""

from regard.attention.extents import EXTENTS
from regard.attention.extents.base import Extent


@EXTENTS.register("global", aliases=("full",))
class Global(Extent):
    """Every key."""

    formula = "every j"
    summary = "attends to every position"
    paper = "Bahdanau, Cho, Bengio 2014, arXiv:1409.0473"
    use = "attend(q, k, v)"
    order = 1
    form = "all"
