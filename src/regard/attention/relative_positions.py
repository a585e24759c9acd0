"""Where things are, inside attention: rotary turns queries and keys; ALiBi, T5 and Shaw add a term to the score.

All depend on the distance between two positions only, so what was learned at one position holds at every other.
Formulas and papers: reference.py.
"""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from regard.attention import catalog
from regard.attention.kernels.grouped_query import grouped_matmul
from regard.attention.positions import frequencies
from regard.errors import RegardError


class Position:
    """One choice of position inside attention. Each does one or two of three things; the rest do nothing."""

    name: ClassVar[str]
    learns: ClassVar[bool] = False  # its bias has gradients
    adds_values: ClassVar[bool] = False  # it has a term in the output too
    scores: ClassVar[tuple[str, ...] | None] = None  # the scores it makes sense with; None for all

    def check(self, query: Tensor, value: Tensor) -> None:
        """Raise RegardError if it was made for other heads or widths: query [B, H, Tq, D], value [B, G, Tk, Dv]."""

    def transform(self, x: Tensor, offset: int) -> Tensor:
        """Features [B, H, T, D], the first at position `offset` -> the same, knowing their positions."""
        return x

    def bias(
        self, query: Tensor, query_positions: Tensor, key_positions: Tensor, scale: float, heads: Tensor | None
    ) -> Tensor | None:
        """What is added to the scores, [H or 1, Tq, Tk] or [B, H, Tq, Tk]; `scale` is the score's own."""
        return None

    def values(self, weights: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """What is added to the output, [B, H, Tq, Dv]. Asked for only where `adds_values`."""
        return weights.new_zeros(())


class Rotary(nn.Module, Position):
    """Each pair (x_2i, x_2i+1) is turned by the angle p base^(-2i / D): q·k then sees only the distance.

    `width` is the head's; with `rotated` only the first so many dimensions are turned.
    """

    name = "rotary"
    scores = ("dot", "scaled-dot", "cosine")

    def __init__(self, width: int, *, base: float = 10000.0, rotated: int | None = None) -> None:
        super().__init__()
        self.rotated = width if rotated is None else rotated
        if self.rotated % 2 or not 0 < self.rotated <= width:
            raise RegardError(
                f"width: rotary turns pairs, so the turned width must be even and at most {width}, not {self.rotated}."
            )
        if not 0 < base < math.inf:
            raise RegardError(f"base: {base} is not possible; it must be above 0.")
        self.base, self.width = base, width

    def check(self, query: Tensor, value: Tensor) -> None:
        if query.shape[-1] != self.width:
            raise RegardError(f"position: rotary was made for width {self.width}, the query has {query.shape[-1]}.")

    def transform(self, x: Tensor, offset: int) -> Tensor:
        positions = torch.arange(offset, offset + x.shape[-2], device=x.device)
        angle = positions[:, None] * frequencies(self.rotated, self.base, x.device)
        angle = torch.stack([angle, angle], -1).flatten(-2)  # [T, rotated]
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        moving, still = x[..., : self.rotated], x[..., self.rotated :]
        quarter = torch.stack([-moving[..., 1::2], moving[..., ::2]], -1).flatten(-2)  # each pair turned by 90 degrees
        turned = moving * cos + quarter * sin
        return turned if self.rotated == self.width else torch.cat([turned, still], -1)


class ALiBi(Position):
    """-m |i - j|: each head forgets with distance at its own slope m, 2^(-8/H), 2^(-16/H), ... 2^-8."""

    name = "alibi"

    def __init__(self, heads: int) -> None:
        if heads < 1:
            raise RegardError(f"heads: {heads} is not a number of heads; it must be at least 1.")
        # The paper's sequence for powers of two; between them, every other slope of the next one's fills up.
        near = 2 ** int(math.log2(heads))
        self.slopes = [2 ** (-8 * (h + 1) / near) for h in range(near)]
        self.slopes += [2 ** (-4 * (2 * h + 1) / near) for h in range(heads - near)]

    def check(self, query: Tensor, value: Tensor) -> None:
        _check_heads(self.name, len(self.slopes), query)

    def bias(
        self, query: Tensor, query_positions: Tensor, key_positions: Tensor, scale: float, heads: Tensor | None
    ) -> Tensor | None:
        slopes = torch.tensor(self.slopes, dtype=query.dtype, device=query.device)
        slopes = slopes if heads is None else slopes[heads]
        distance = (query_positions[:, None] - key_positions[None, :]).abs()
        return -slopes[:, None, None] * distance


class T5(nn.Module, Position):
    """A learned number for each head and bucket of j - i: one a distance when near, logarithmically wider when far.

    `two_sided=False`, for causal attention, spends all buckets on the past.
    """

    name = "t5"
    learns = True

    def __init__(self, heads: int, *, buckets: int = 32, furthest: int = 128, two_sided: bool = True) -> None:
        super().__init__()
        least = 4 if two_sided else 2
        if buckets < least or buckets % 2:
            raise RegardError(f"buckets: {buckets} is not possible; it must be even and at least {least}.")
        if furthest <= buckets // (4 if two_sided else 2):
            raise RegardError(
                f"furthest: {furthest} is nearer than the positions with a bucket of their own; make it larger."
            )
        self.buckets, self.furthest, self.two_sided = buckets, furthest, two_sided
        self.table = nn.Parameter(torch.empty(heads, buckets).normal_(std=0.02))

    def check(self, query: Tensor, value: Tensor) -> None:
        _check_heads(self.name, len(self.table), query)

    def bucket(self, distance: Tensor) -> Tensor:
        """Integer distances j - i -> bucket numbers."""
        buckets, first = self.buckets, torch.zeros_like(distance)
        if self.two_sided:
            buckets //= 2
            first, distance = (distance > 0).long() * buckets, distance.abs()
        else:
            distance = (-distance).clamp_min(0)
        exact = buckets // 2
        wide = torch.float32 if distance.device.type == "mps" else torch.float64
        ratio = (distance.to(wide) / exact).clamp_min(1).log() / math.log(self.furthest / exact)
        far = (exact + (ratio * (buckets - exact)).long()).clamp_max(buckets - 1)
        return first + torch.where(distance < exact, distance, far)

    def bias(
        self, query: Tensor, query_positions: Tensor, key_positions: Tensor, scale: float, heads: Tensor | None
    ) -> Tensor | None:
        table = self.table if heads is None else self.table[heads]
        return table.to(query.dtype)[:, self.bucket(key_positions[None, :] - query_positions[:, None])]


class Shaw(nn.Module, Position):
    """A learned vector for each distance up to `clip`, added to the key and (with `value_width`) to the value.

    Shared by all heads, as in the paper. q·a is computed once per query and distance, then looked up: nothing of
    size [Tq, Tk, D] is stored.
    """

    name = "shaw"
    learns = True
    scores = ("dot", "scaled-dot")

    def __init__(self, width: int, *, clip: int = 16, value_width: int | None = None) -> None:
        super().__init__()
        if clip < 0:
            raise RegardError(f"clip: {clip} is not a distance; it must be 0 or more.")
        self.clip = clip
        self.keys = nn.Parameter(torch.empty(2 * clip + 1, width).normal_(std=0.02))
        self.value_table = (
            nn.Parameter(torch.empty(2 * clip + 1, value_width).normal_(std=0.02)) if value_width else None
        )

    def check(self, query: Tensor, value: Tensor) -> None:
        if query.shape[-1] != self.keys.shape[1]:
            raise RegardError(
                f"position: shaw was made for width {self.keys.shape[1]}, the query has {query.shape[-1]}."
            )
        if self.value_table is not None and value.shape[-1] != self.value_table.shape[1]:
            width = self.value_table.shape[1]
            raise RegardError(f"position: shaw was made for values of width {width}, these have {value.shape[-1]}.")

    @property
    def adds_values(self) -> bool:  # type: ignore[override]
        return self.value_table is not None

    def _distance(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        return (key_positions[None, :] - query_positions[:, None]).clamp(-self.clip, self.clip) + self.clip

    def bias(
        self, query: Tensor, query_positions: Tensor, key_positions: Tensor, scale: float, heads: Tensor | None
    ) -> Tensor | None:
        by_distance = grouped_matmul(
            query, self.keys.t()[None, None].expand(len(query), 1, -1, -1)
        )  # [B, H, Tq, 2c + 1]
        index = self._distance(query_positions, key_positions).expand(*query.shape[:2], -1, -1)
        return by_distance.gather(-1, index) * scale

    def values(self, weights: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        assert self.value_table is not None
        index = self._distance(query_positions, key_positions).expand_as(weights)
        by_distance = weights.new_zeros(*weights.shape[:-1], 2 * self.clip + 1).scatter_add(-1, index, weights)
        return by_distance @ self.value_table


def _check_heads(name: str, heads: int, query: Tensor) -> None:
    if query.shape[1] != heads:
        raise RegardError(f"position: {name} was made for {heads} heads, the query has {query.shape[1]}.")


def resolve_position(position: str | Position, *, heads: int, width: int) -> Position:
    """The position that a name or an object stands for. Names with weights are `new_position`'s business."""
    if isinstance(position, Position):
        return position
    if not isinstance(position, str):
        raise RegardError(f"position: expected a name or a Position, not {type(position).__name__}.")
    name = catalog.find(position, "position").name
    if name == "rotary":
        return Rotary(width)
    if name == "alibi":
        return ALiBi(heads)
    if name in ("shaw", "t5"):
        example = "Shaw(width)" if name == "shaw" else "T5(heads)"
        raise RegardError(
            f"position: {name!r} has weights of its own; pass {example}, or use Attention(position={name!r}), which "
            "makes it."
        )
    example = "Sinusoidal(width)(x)" if name == "sinusoidal" else "Learned(length, width)(x)"
    raise RegardError(f"position: {name!r} goes into the embeddings, before attention: {example}.")


def new_position(position: str | Position, *, heads: int, width: int, value_width: int) -> Position:
    """The same, and names with weights are made."""
    name = catalog.find(position, "position").name if isinstance(position, str) else None
    if name == "t5":
        return T5(heads)
    if name == "shaw":
        return Shaw(width, value_width=value_width)
    return resolve_position(position, heads=heads, width=width)
