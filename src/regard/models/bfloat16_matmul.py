"""Matrix products whose operands are rounded to bfloat16, where `bfloat16_products` says so.

The library behind PyTorch's bfloat16 products (oneDNN) makes machine code for every new size, which takes longer than
the product itself; sentences come in every size. So rows are filled up with zeros to a few sizes.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import torch
from torch import Tensor

MIN_MULTIPLICATIONS = 1 << 20  # multiplications below which rounding the operands costs more than it brings
_wanted: ContextVar[bool] = ContextVar("rounded products", default=False)


@contextlib.contextmanager
def bfloat16_products() -> Iterator[None]:
    """Within this context our products of float32 matrices round their operands, where they are large enough."""
    before = _wanted.set(True)
    try:
        yield
    finally:
        _wanted.reset(before)


def uses_bfloat16(x: Tensor, weight: Tensor) -> bool:
    """Whether x [..., D] times weight [n, D] is to be rounded here and now."""
    return _wanted.get() and x.dtype == weight.dtype == torch.float32 and x.numel() * len(weight) >= MIN_MULTIPLICATIONS


def padded_rows(count: int) -> int:
    """The number of rows that `count` is filled up to: an eighth more at most, or 32."""
    step = max(32, 1 << max(0, count.bit_length() - 4))
    return -(-count // step) * step


def to_padded_bfloat16(x: Tensor) -> Tensor:
    """x [n, D] -> [padded_rows(n), D] in bfloat16, zeros below."""
    rows = padded_rows(len(x))
    if rows == len(x):
        return x.bfloat16()
    filled = torch.empty(rows, x.shape[1], dtype=torch.bfloat16, device=x.device)
    filled[: len(x)] = x
    filled[len(x) :] = 0
    return filled


class Product:
    """x [n, D] -> x W' for one weight W [m, D] and many x, and the way back."""

    def __init__(self, weight: Tensor, rounded: bool) -> None:
        self._rounded, self._weight = rounded, weight.bfloat16() if rounded else weight

    def __call__(self, x: Tensor) -> Tensor:
        """[n, m], of its own memory."""
        return self._times(x, self._weight.t())

    def back(self, g: Tensor) -> Tensor:
        """GateGradients of the result [n, m] -> those of x [n, D]."""
        return self._times(g, self._weight)

    def _times(self, x: Tensor, matrix: Tensor) -> Tensor:
        if self._rounded:
            return torch.mm(to_padded_bfloat16(x), matrix)[: len(x)].float()
        return torch.mm(x, matrix)


def weight_gradient(g: Tensor, x: Tensor, rounded: bool) -> Tensor:
    """g' x for g [n, m] and x [n, D]: a weight's gradient over all its rows."""
    return torch.mm(to_padded_bfloat16(g).t(), to_padded_bfloat16(x)).float() if rounded else torch.mm(g.t(), x)
