"""Restricted self-attention (Vaswani et al. 2017, arXiv:1706.03762) with global tokens (Beltagy et al. 2020)."""

from dataclasses import dataclass
from typing import ClassVar, Self

from torch import Tensor

from regard.attention import reference
from regard.attention.extents import EXTENTS
from regard.attention.extents.base import Extent, KeyRange
from regard.attention.type_checks import is_integer
from regard.errors import RegardError


@EXTENTS.register("window", aliases=("restricted",))
@dataclass(frozen=True)
class Window(Extent):
    """Keys at most `radius` positions away, |i - j| <= radius: restricted self-attention.

    With `causal`, none ahead. The first `global_tokens` positions see everything and are seen by everything.

        radius 1            radius 1, causal     radius 1, one global token
        x x . . .           x . . . .            x x x x x
        x x x . .           x x . . .            x x x . .
        . x x x .           . x x . .            x x x x .
        . . x x x           . . x x .            x . x x x
        . . . x x           . . . x x            x . . x x
    """

    formula: ClassVar[str] = "|i − j| ≤ r"
    summary: ClassVar[str] = "the neighborhood; causal or not, with global tokens or not"
    paper: ClassVar[str] = (
        "Vaswani et al. 2017, arXiv:1706.03762 (restricted); Beltagy, Peters, Cohan 2020, arXiv:2004.05150"
    )
    use: ClassVar[str] = "attend(q, k, v, extent=Window(64, causal=True, global_tokens=1))"
    constructor: ClassVar[str] = "Window(radius=64)"
    order: ClassVar[int] = 3
    form: ClassVar[str] = "band"

    radius: int
    causal: bool = False
    global_tokens: int = 0

    def __post_init__(self) -> None:
        if not is_integer(self.radius) or self.radius < 0:
            raise RegardError(f"radius: {self.radius!r} is not a distance between positions; it must be 0, 1, 2, ...")
        if not is_integer(self.global_tokens) or self.global_tokens < 0:
            raise RegardError(
                f"global_tokens: {self.global_tokens!r} is not a number of positions; it must be 0 or more."
            )

    def allowed(self, query_positions: Tensor, key_positions: Tensor) -> Tensor | None:
        return reference.window(query_positions, key_positions, self.radius, self.causal, self.global_tokens)

    def key_ranges(self, first: int, last: int, keys: int) -> list[KeyRange]:
        ahead = 0 if self.causal else self.radius
        if first < self.global_tokens:
            return [(0, min(keys, last + 1) if self.causal else keys)]
        start, stop = max(0, first - self.radius), min(keys, last + 1 + ahead)
        if self.global_tokens >= start:
            return [(0, max(stop, min(keys, self.global_tokens)))]
        return [(0, self.global_tokens), (start, stop)] if self.global_tokens else [(start, max(start, stop))]

    def masks_any(self, first: int, last: int, keys: int) -> bool:
        if self.causal and first < keys - 1:
            return True
        hidden_before = last - self.radius > self.global_tokens
        hidden_after = first + self.radius < keys - 1
        return last >= self.global_tokens and (hidden_before or hidden_after)

    @classmethod
    def create(cls, *, query_width: int, heads: int, radius: int) -> Self:
        return cls(radius)
