"""Stage 2, the extent: which keys may this query look at?

Positional extents (global, causal, window, local-m) are functions of two positions and nothing else, so that one step
with a cache equals the same row of the parallel pass. Local-p looks at the query itself.
Formulas and papers: reference.py.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from regard.attention import catalog, reference
from regard.attention.number_types import is_integer, is_real
from regard.errors import RegardError

Span = tuple[int, int]


class Extent:
    """One choice of extent. Places are counted from 0, the first key's."""

    name: ClassVar[str]

    def allowed(self, query_positions: Tensor, key_positions: Tensor) -> Tensor | None:
        """Which keys may be looked at, [Tq, Tk]; None if positions do not restrict anything."""
        return None

    def spans(self, first: int, last: int, keys: int) -> list[Span]:
        """Ranges [start, stop) of keys that hold all that queries at positions first..last may look at."""
        return [(0, keys)]

    def restricts(self, first: int, last: int, keys: int) -> bool:
        """Whether any of these queries is kept from any of these keys."""
        return False


class Global(Extent):
    """Every key."""

    name = "global"


class Causal(Extent):
    """No key after the query: j <= i."""

    name = "causal"

    def allowed(self, query_positions: Tensor, key_positions: Tensor) -> Tensor | None:
        return reference.causal(query_positions, key_positions)

    def spans(self, first: int, last: int, keys: int) -> list[Span]:
        return [(0, min(keys, last + 1))]

    def restricts(self, first: int, last: int, keys: int) -> bool:
        return first < keys - 1


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

    radius: int
    causal: bool = False
    global_tokens: int = 0
    name: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        if not is_integer(self.radius) or self.radius < 0:
            raise RegardError(f"radius: {self.radius!r} is not a distance between positions; it must be 0, 1, 2, ...")
        if not is_integer(self.global_tokens) or self.global_tokens < 0:
            raise RegardError(
                f"global_tokens: {self.global_tokens!r} is not a number of positions; it must be 0 or more."
            )

    def allowed(self, query_positions: Tensor, key_positions: Tensor) -> Tensor | None:
        return reference.window(query_positions, key_positions, self.radius, self.causal, self.global_tokens)

    def spans(self, first: int, last: int, keys: int) -> list[Span]:
        ahead = 0 if self.causal else self.radius
        if first < self.global_tokens:
            return [(0, min(keys, last + 1) if self.causal else keys)]
        start, stop = max(0, first - self.radius), min(keys, last + 1 + ahead)
        if self.global_tokens >= start:
            return [(0, max(stop, min(keys, self.global_tokens)))]
        return [(0, self.global_tokens), (start, stop)] if self.global_tokens else [(start, max(start, stop))]

    def restricts(self, first: int, last: int, keys: int) -> bool:
        if self.causal and first < keys - 1:
            return True
        hidden_before = last - self.radius > self.global_tokens
        hidden_after = first + self.radius < keys - 1
        return last >= self.global_tokens and (hidden_before or hidden_after)


class LocalMonotonic(Window):
    """Luong's local-m: the window of keys around p_t = t, for a target that follows its source in step."""

    name: ClassVar[str] = "local-m"

    def __init__(self, radius: int) -> None:
        super().__init__(radius)


class LocalPredictive(nn.Module, Extent):
    """Luong's local-p: a window around the position p_t = S sigmoid(v' tanh(W h_t)) that the query predicts.

    The weights inside it are normalized, then multiplied by a Gaussian of sigma = radius / 2 around p_t, and not
    normalized again. S is the number of keys up to the last one the mask allows. One W and v a head.
    """

    name: ClassVar[str] = "local-p"

    def __init__(self, query_width: int, *, radius: float, width: int | None = None, heads: int = 1) -> None:
        super().__init__()
        if not is_real(radius) or not 0 < radius < math.inf:
            raise RegardError(
                f"radius: {radius!r} is not possible; it must be above 0, as the Gaussian's sigma is half of it."
            )
        width = query_width if width is None else width
        for name, size in (("query_width", query_width), ("width", width), ("heads", heads)):
            if size < 1:
                raise RegardError(f"{name}: {size} is not a size; it must be at least 1.")
        self.radius, self.query_width, self.heads = radius, query_width, heads
        self.weight = nn.Parameter(torch.empty(heads, width, query_width))
        self.v = nn.Parameter(torch.empty(heads, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(fan-in)."""
        for weight in (self.weight, self.v):
            bound = 1 / math.sqrt(weight.shape[-1])
            nn.init.uniform_(weight, -bound, bound)

    def centers(self, query: Tensor, length: Tensor) -> Tensor:
        """query [B, H or 1, Tq, D], length [B or 1, H or 1, Tq or 1] -> p_t [B, H, Tq]."""
        if query.shape[-1] != self.query_width:
            raise RegardError(f"query: width {query.shape[-1]} does not fit local-p, made for {self.query_width}.")
        if query.shape[1] not in (1, self.heads):
            raise RegardError(f"query: {query.shape[1]} heads do not fit local-p, made for {self.heads}.")
        wide = torch.promote_types(query.dtype, torch.float32)  # half precision cannot tell position 1000 from 1001
        return reference.predicted_center(query.to(wide), self.weight.to(wide), self.v.to(wide), length.to(wide))


def resolve_extent(extent: str | Extent) -> Extent:
    """The extent that a name or an object stands for."""
    if isinstance(extent, Extent):
        return extent
    if not isinstance(extent, str):
        raise RegardError(f"extent: expected a name or an Extent, not {type(extent).__name__}.")
    name = catalog.find(extent, "extent").name
    if name == "global":
        return Global()
    if name == "causal":
        return Causal()
    example = {"window": "Window(radius=64)", "local-m": "LocalMonotonic(radius=5)"}
    raise RegardError(f"extent: {name!r} needs a radius; pass {example.get(name, 'LocalPredictive(width, radius=5)')}.")
