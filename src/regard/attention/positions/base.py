"""What a position is: one inside attention (`Position`), or one in the embeddings (`PositionEmbedding`).

Formulas and papers: reference.py.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from regard.attention.axis import required_arguments
from regard.attention.positions import POSITIONS
from regard.errors import RegardError


class Position:
    """One choice of position inside attention. Each does one or two of three things; the rest do nothing."""

    name: ClassVar[str]  # set by registering; the class's own name otherwise
    formula: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    use: ClassVar[str] = ""
    constructor: ClassVar[str] = ""  # how to construct it, where it has weights
    order: ClassVar[int]
    adds_bias: ClassVar[bool] = False  # it adds a term to the score
    learns: ClassVar[bool] = False  # its bias has gradients
    may_add_values: ClassVar[bool] = False  # it may add a term to the output
    scores: ClassVar[tuple[str, ...] | None] = None  # the scores it works with; None for all

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = cls.__name__
        for function, constant in (("bias", "adds_bias"), ("values", "may_add_values")):
            if function in vars(cls) and constant not in vars(cls):
                setattr(cls, constant, True)

    @classmethod
    def create(cls, *, heads: int, width: int, value_width: int) -> Self:
        """A new one for an `Attention` of these sizes."""
        return cls()

    @property
    def adds_values(self) -> bool:
        """Whether it adds a term to the output."""
        return self.may_add_values

    def check(self, query: Tensor, value: Tensor) -> None:
        """Raise RegardError if it was built for other heads or widths: query [B, H, Tq, D], value [B, G, Tk, Dv]."""

    def transform(self, x: Tensor, offset: int) -> Tensor:
        """Features [B, H, T, D], the first at position `offset` -> features with their positions encoded."""
        return x

    def bias(
        self, query: Tensor, query_positions: Tensor, key_positions: Tensor, scale: float, heads: Tensor | None
    ) -> Tensor | None:
        """What is added to the scores, [H or 1, Tq, Tk] or [B, H, Tq, Tk]; `scale` is the score's own."""
        return None

    def values(self, weights: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """What is added to the output, [B, H, Tq, Dv]. Called only where `adds_values`."""
        return weights.new_zeros(())


class PositionEmbedding(nn.Module, ABC):
    """A position that is joined to the embeddings, before attention: `embedding + position`, or side by side."""

    name: ClassVar[str]
    formula: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    use: ClassVar[str] = ""
    order: ClassVar[int]
    embeds: ClassVar[bool] = True  # it does not act inside attention

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = cls.__name__

    def __init__(self, width: int, combine: str) -> None:
        super().__init__()
        if width < 1:
            raise RegardError(f"width: {width} is not a size; it must be at least 1.")
        if combine not in ("add", "concatenate"):
            raise RegardError(f"combine: there is no {combine!r}; the choices are add, concatenate.")
        self.width, self.combine = width, combine

    @classmethod
    def create_embedding(cls, width: int, length: int) -> "PositionEmbedding":
        """A new one for embeddings of this width. length: the most positions, where each has its own vector."""
        return cls(width, "add")

    @abstractmethod
    def embed(self, positions: Tensor) -> Tensor:
        """Integer positions [...] -> vectors [..., width]."""

    def forward(self, x: Tensor, *, offset: int = 0) -> Tensor:
        """x [B, T, D], beginning at `offset` -> [B, T, D] (add, D = width) or [B, T, D + width] (concatenate)."""
        if x.ndim != 3:
            raise RegardError(f"x: expected [batch, time, width], got {tuple(x.shape)}.")
        vectors = self.embed(torch.arange(offset, offset + x.shape[1], device=x.device)).to(x.dtype)
        if self.combine == "concatenate":
            return torch.cat([x, vectors.expand(len(x), -1, -1)], -1)
        if x.shape[-1] != self.width:
            raise RegardError(
                f"x: width {x.shape[-1]} does not fit positions of width {self.width}, which are added; "
                "make them equal, or use combine='concatenate'."
            )
        return x + vectors


def embeds_positions(name: str) -> bool:
    """Whether the positions of this name are joined to embeddings, rather than acting inside attention."""
    return name != "none" and issubclass(POSITIONS.get(name), PositionEmbedding)


def position_embedding(name: str, width: int, length: int) -> PositionEmbedding | None:
    """The position of this name for embeddings; None if it acts inside attention, or is "none"."""
    if not embeds_positions(name):
        return None
    found = POSITIONS.get(name)
    assert issubclass(found, PositionEmbedding)
    return found.create_embedding(width, length)


def frequencies(width: int, base: float, device: torch.device) -> Tensor:
    """base^(-2i / width) for i = 0, 1, ...: how fast each wave or pair turns, [width / 2].

    In float64 where the device has it, and never a buffer that `model.half()` would round: a position in the thousands
    times a float32 frequency is already wrong in the fourth digit of its sine.
    """
    dtype = torch.float32 if device.type == "mps" else torch.float64
    powers: Tensor = base ** -(torch.arange(0, width, 2, dtype=dtype, device=device) / width)
    return powers


def check_heads(name: str, heads: int, query: Tensor) -> None:
    """Raise RegardError if the query, [B, H, Tq, D], has another number of heads."""
    if query.shape[1] != heads:
        raise RegardError(f"position: {name} was made for {heads} heads, the query has {query.shape[1]}.")


def resolve_position(position: str | Position, *, heads: int, width: int) -> Position:
    """The position that a name or an object stands for. Names with weights are `new_position`'s business."""
    if isinstance(position, str) and (position_class := _find_class(position)).learns:
        example = (
            vars(position_class).get("constructor")
            or f"{position_class.__name__}({required_arguments(position_class)})"
        )
        raise RegardError(
            f"position: {position_class.name!r} has weights of its own; pass {example}, or use "
            f"Attention(width, heads=heads, position={position_class.name!r}), which makes it."
        )
    return new_position(position, heads=heads, width=width, value_width=width)


def new_position(position: str | Position, *, heads: int, width: int, value_width: int) -> Position:
    """The same, and names with weights are made."""
    if isinstance(position, Position):
        return position
    if not isinstance(position, str):
        raise RegardError(f"position: expected a name or a Position, not {type(position).__name__}.")
    return _find_class(position).create(heads=heads, width=width, value_width=value_width)


def _find_class(spelling: str) -> type[Position]:
    position_class = POSITIONS.find_class(spelling)
    if issubclass(position_class, PositionEmbedding):
        example = position_class.use.split("  #", maxsplit=1)[0]
        raise RegardError(f"position: {position_class.name!r} goes into the embeddings, before attention: {example}.")
    return position_class
