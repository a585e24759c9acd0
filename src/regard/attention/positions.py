"""Where things are, put into the embeddings: `embedding + position`, or the two side by side.

Sinusoidal: Vaswani et al. 2017 (arXiv:1706.03762, section 3.5). Learned: Gehring et al. 2017 (arXiv:1705.03122).
Positions that act inside attention (rotary, ALiBi, Shaw, T5) are in relative.py.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from regard.errors import RegardError


def frequencies(width: int, base: float, device: torch.device) -> Tensor:
    """base^(-2i / width) for i = 0, 1, ...: how fast each wave or pair turns, [width / 2].

    In float64 where the device has it, and never a buffer that `model.half()` would round: a position in the thousands
    times a float32 frequency is already wrong in the fourth digit of its sine.
    """
    kind = torch.float32 if device.type == "mps" else torch.float64
    powers: Tensor = base ** -(torch.arange(0, width, 2, dtype=kind, device=device) / width)
    return powers


class _Embedded(nn.Module, ABC):
    """Common to both: how the vectors of positions join the embeddings."""

    def __init__(self, width: int, combine: str) -> None:
        super().__init__()
        if width < 1:
            raise RegardError(f"width: {width} is not a size; it must be at least 1.")
        if combine not in ("add", "concatenate"):
            raise RegardError(f"combine: there is no {combine!r}; the choices are add, concatenate.")
        self.width, self.combine = width, combine

    @abstractmethod
    def embed(self, positions: Tensor) -> Tensor:
        """Integer positions [...] -> vectors [..., width]."""

    def forward(self, x: Tensor, *, offset: int = 0) -> Tensor:
        """x [B, T, D], beginning at `offset` -> [B, T, D] (add, D = width) or [B, T, D + width] (concatenate)."""
        if x.ndim != 3:
            raise RegardError(f"x: expected [batch, time, width], got {tuple(x.shape)}.")
        where = self.embed(torch.arange(offset, offset + x.shape[1], device=x.device)).to(x.dtype)
        if self.combine == "concatenate":
            return torch.cat([x, where.expand(len(x), -1, -1)], -1)
        if x.shape[-1] != self.width:
            raise RegardError(
                f"x: width {x.shape[-1]} does not fit positions of width {self.width}, which are added; "
                "make them equal, or use combine='concatenate'."
            )
        return x + where


class Sinusoidal(_Embedded):
    """Waves of many lengths: position p + k is a fixed rotation of position p, for any length; no weights."""

    def __init__(self, width: int, *, combine: str = "add") -> None:
        super().__init__(width, combine)

    def embed(self, positions: Tensor) -> Tensor:
        angle = positions[..., None] * frequencies(self.width, 10000.0, positions.device)  # [..., width / 2]
        waves = torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)[..., : self.width]
        return waves


class Learned(_Embedded):
    """A table with one vector for each of the first `length` positions."""

    def __init__(self, length: int, width: int, *, combine: str = "add") -> None:
        super().__init__(width, combine)
        if length < 1:
            raise RegardError(f"length: {length} is not a number of positions; it must be at least 1.")
        self.table = nn.Embedding(length, width)
        nn.init.normal_(self.table.weight, std=0.02)

    def embed(self, positions: Tensor) -> Tensor:
        length = self.table.num_embeddings
        if positions.numel() and not positions.is_meta and int(positions.max()) >= length:
            raise RegardError(
                f"x: position {int(positions.max())} is beyond the {length} positions that were learned; "
                f"shorten the input, or make Learned(length={int(positions.max()) + 1}, ...)."
            )
        vectors: Tensor = self.table(positions)
        return vectors
