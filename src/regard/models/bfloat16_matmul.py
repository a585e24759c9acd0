"""Matrix products whose operands are rounded to bfloat16, within the context `bfloat16_matmul`.

The library behind PyTorch's bfloat16 products (oneDNN) generates machine code for every new size, which takes longer
than the product itself, and batches come in every size. So rows are padded with zeros to a few sizes.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import torch
from torch import Tensor

MIN_MULTIPLICATIONS = 1 << 20  # multiplications below which rounding the operands costs more time than it saves
_enabled: ContextVar[bool] = ContextVar("bfloat16 products", default=False)


@contextlib.contextmanager
def bfloat16_matmul() -> Iterator[None]:
    """Within this context our products of float32 matrices round their operands, where they are large enough."""
    token = _enabled.set(True)
    try:
        yield
    finally:
        _enabled.reset(token)


def uses_bfloat16(x: Tensor, weight: Tensor) -> bool:
    """Whether x [..., D] times weight [n, D] is to be rounded to bfloat16: within the context, and large enough."""
    return (
        _enabled.get() and x.dtype == weight.dtype == torch.float32 and x.numel() * len(weight) >= MIN_MULTIPLICATIONS
    )


def padded_rows(count: int) -> int:
    """The number of rows that `count` is padded to: at most an eighth more, or 32."""
    step = max(32, 1 << max(0, count.bit_length() - 4))
    return -(-count // step) * step


def to_padded_bfloat16(x: Tensor) -> Tensor:
    """x [n, D] -> [padded_rows(n), D] in bfloat16, zeros below."""
    rows = padded_rows(len(x))
    if rows == len(x):
        return x.bfloat16()
    padded = torch.empty(rows, x.shape[1], dtype=torch.bfloat16, device=x.device)
    padded[: len(x)] = x
    padded[len(x) :] = 0
    return padded


class Projection:
    """x [n, D] -> x W' for one weight W [m, D] and many x, with the gradient of x."""

    def __init__(self, weight: Tensor, bfloat16: bool) -> None:
        self._bfloat16, self._weight = bfloat16, weight.bfloat16() if bfloat16 else weight

    def __call__(self, x: Tensor) -> Tensor:
        """[n, m], newly allocated."""
        return self._matmul(x, self._weight.t())

    def input_gradient(self, g: Tensor) -> Tensor:
        """The gradient of the result [n, m] -> that of x [n, D]."""
        return self._matmul(g, self._weight)

    def _matmul(self, x: Tensor, matrix: Tensor) -> Tensor:
        if self._bfloat16:
            return torch.mm(to_padded_bfloat16(x), matrix)[: len(x)].float()
        return torch.mm(x, matrix)


def weight_gradient(g: Tensor, x: Tensor, bfloat16: bool) -> Tensor:
    """g' x for g [n, m] and x [n, D]: a weight's gradient over all its rows."""
    return torch.mm(to_padded_bfloat16(g).t(), to_padded_bfloat16(x)).float() if bfloat16 else torch.mm(g.t(), x)
