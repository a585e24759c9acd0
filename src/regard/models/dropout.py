"""Counter-based dropout.

Srivastava et al. 2014. Whether element i is kept is a hash of i and of one 64-bit key that each call takes from
PyTorch's generator: no mask is stored, the backward pass computes the hash again, and seeding the generator (the
training loop does, from the run's seed and the step) makes it reproducible. On the CPU the hash runs in C, fused with
the residual connection or the ReLU next to it; elsewhere the same hash runs in tensor algebra, with the same bits.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard import native
from regard.errors import RegardError

BLOCK = 1024  # elements per unit of the C kernels' range
_UINT32_MASK = 0xFFFFFFFF


class Dropout(nn.Module):
    """Zeroes each element with `probability` in training, and scales the others so that the mean stays."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not 0 <= probability < 1:
            raise RegardError(f"dropout: {probability} is not possible; it must be at least 0 and below 1.")
        self.probability = probability

    @property
    def is_identity(self) -> bool:
        """Whether it does nothing."""
        return not self.training or self.probability == 0

    def forward(self, x: Tensor) -> Tensor:
        """dropout(x)"""
        if self.is_identity:
            return x
        dropped: Tensor = _Dropout.apply(x, *_draw(self.probability))  # type: ignore[no-untyped-call]
        return dropped

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """residual + dropout(x)"""
        if self.is_identity:
            return residual + x
        total: Tensor = _DropoutAdd.apply(x, residual, *_draw(self.probability))  # type: ignore[no-untyped-call]
        return total

    def relu(self, x: Tensor) -> Tensor:
        """dropout(max(x, 0))"""
        if self.is_identity:
            return torch.relu(x)
        positive: Tensor = _ReluDropout.apply(x, *_draw(self.probability))  # type: ignore[no-untyped-call]
        return positive

    def extra_repr(self) -> str:
        return f"{self.probability}"


def _draw(probability: float) -> tuple[int, int, float]:
    """A key from PyTorch's generator, the threshold below which a hash drops, and the scale of what is kept."""
    key = int(torch.randint(-(1 << 63), (1 << 63) - 1, ()).item())
    return key, min(round(probability * (1 << 32)), _UINT32_MASK), 1 / (1 - probability)


def keep_mask(shape: torch.Size, key: int, threshold: int, device: torch.device) -> Tensor:
    """The hash in tensor algebra: True where an element is kept. What dropout.c computes, bit for bit."""
    index = torch.arange(shape.numel(), device=device)
    x = (index & _UINT32_MASK) ^ (key & _UINT32_MASK)
    x = (_hash(x) + ((key >> 32) & _UINT32_MASK) + (index >> 32)) & _UINT32_MASK
    return (_hash(x) >= threshold).view(shape)


def _hash(x: Tensor) -> Tensor:
    # The products stay below 2^63: 32 bits times 31 bits, and the second factor is taken modulo 2^32 in two halves.
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & _UINT32_MASK
    x = x ^ (x >> 15)
    x = (x * 0x046CA68B + ((x & 1) << 31)) & _UINT32_MASK  # 0x846ca68b = 2^31 + 0x046ca68b
    return x ^ (x >> 16)


def _call_native(name: str, tensors: list[Tensor], key: int, threshold: int, scale: float) -> None:
    size = tensors[0].numel()
    numbers = [size, key & _UINT32_MASK, (key >> 32) & _UINT32_MASK, threshold, scale]
    native.call(name, tensors, numbers, count=-(-size // BLOCK), work=size)


def _apply_dropout(x: Tensor, key: int, threshold: int, scale: float) -> Tensor:
    if not native.is_supported(x):
        return torch.where(keep_mask(x.shape, key, threshold, x.device), x * scale, 0)
    x = x.contiguous()
    out = torch.empty_like(x)
    _call_native("regard_dropout_forward", [x, out], key, threshold, scale)
    return out


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, key: int, threshold: int, scale: float) -> Tensor:
        ctx.draw = key, threshold, scale
        return _apply_dropout(x, key, threshold, scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        return _apply_dropout(g, *ctx.draw), None, None, None


class _DropoutAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, residual: Tensor, key: int, threshold: int, scale: float) -> Tensor:
        ctx.draw = key, threshold, scale
        if x.shape != residual.shape:
            raise RegardError(f"residual: {tuple(residual.shape)} does not fit {tuple(x.shape)}.")
        if not native.is_supported(x, residual):
            return residual + _apply_dropout(x, key, threshold, scale)
        x, residual = x.contiguous(), residual.contiguous()
        out = torch.empty_like(x)
        _call_native("regard_dropout_add_forward", [x, residual, out], key, threshold, scale)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        return _apply_dropout(g, *ctx.draw), g, None, None, None


class _ReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, key: int, threshold: int, scale: float) -> Tensor:
        ctx.scale = scale
        if native.is_supported(x):
            x = x.contiguous()
            out = torch.empty_like(x)
            _call_native("regard_dropout_relu_forward", [x, out], key, threshold, scale)
        else:
            out = _apply_dropout(torch.relu(x), key, threshold, scale)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        (out,) = ctx.saved_tensors
        if not native.is_supported(out, g):
            return torch.where(out > 0, g * ctx.scale, 0), None, None, None
        g = g.contiguous()
        dx = torch.empty_like(g)
        size = g.numel()
        count = -(-size // BLOCK)
        native.call("regard_dropout_relu_backward", [out, g, dx], [size, ctx.scale], count=count, work=size)
        return dx, None, None, None
