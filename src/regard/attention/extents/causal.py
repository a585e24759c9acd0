"""Causal attention (Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3)."""

from torch import Tensor

from regard.attention import reference
from regard.attention.extents import EXTENTS
from regard.attention.extents.base import Extent, KeyRange


@EXTENTS.register("causal")
class Causal(Extent):
    """No key after the query: j <= i."""

    formula = "j ≤ i"
    summary = "never attends to later positions"
    paper = "Vaswani et al. 2017, arXiv:1706.03762"
    use = 'attend(q, k, v, extent="causal")'
    order = 2
    form = "causal"

    def allowed(self, query_positions: Tensor, key_positions: Tensor) -> Tensor | None:
        return reference.causal(query_positions, key_positions)

    def key_ranges(self, first: int, last: int, keys: int) -> list[KeyRange]:
        return [(0, min(keys, last + 1))]

    def masks_any(self, first: int, last: int, keys: int) -> bool:
        return first < keys - 1
