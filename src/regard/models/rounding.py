"""Matrices rounded to bfloat16 for multiplication, in few different sizes.

The library behind PyTorch's bfloat16 products (oneDNN) makes machine code for every new size, which takes longer than
the product itself; sentences come in every size. So rows are filled up with zeros to a few sizes.
"""

import torch
from torch import Tensor


def rows_for(count: int) -> int:
    """The number of rows that `count` is filled up to: an eighth more at most, or 32."""
    step = max(32, 1 << max(0, count.bit_length() - 4))
    return -(-count // step) * step


def in_bfloat16(x: Tensor) -> Tensor:
    """x [n, D] -> [rows_for(n), D] in bfloat16, zeros below."""
    rows = rows_for(len(x))
    if rows == len(x):
        return x.bfloat16()
    filled = torch.empty(rows, x.shape[1], dtype=torch.bfloat16, device=x.device)
    filled[: len(x)] = x
    filled[len(x) :] = 0
    return filled
