"""Local monotonic attention (Luong et al. 2015, arXiv:1508.04025, section 3.2)."""

from typing import ClassVar

from regard.attention.extents import EXTENTS
from regard.attention.extents.window import Window


@EXTENTS.register("local-m", aliases=("monotonic",))
class LocalMonotonic(Window):
    """Luong's local-m: the window of keys around p_t = t, for a target aligned monotonically with its source."""

    formula: ClassVar[str] = "|t − s| ≤ r"
    summary: ClassVar[str] = "a window that moves on with the output"
    paper: ClassVar[str] = "Luong, Pham, Manning 2015, arXiv:1508.04025"
    use: ClassVar[str] = "attend(q, k, v, extent=LocalMonotonic(5))"
    constructor: ClassVar[str] = "LocalMonotonic(radius=5)"
    order: ClassVar[int] = 4

    def __init__(self, radius: int) -> None:
        super().__init__(radius)
