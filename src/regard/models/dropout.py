"""Dropout from a counter instead of a stream.

Srivastava et al. 2014. Whether element i is kept is a hash of i and of one 64-bit key that each call takes from
PyTorch's generator: no mask is stored, the backward pass hashes again, and whoever seeds the generator (the training
loop does, from the run's seed and the step) has fixed everything. On the processor the hash runs in C, fused with what
stands beside dropout in every network; elsewhere the same hash runs in tensor algebra, with the same bits.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard import native
from regard.errors import RegardError

BLOCK = 1024  # elements that the C kernels count by
_LOW = 0xFFFFFFFF


class Dropout(nn.Module):
    """Zeroes each element with `probability` in training, and scales the others so that the mean stays."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not 0 <= probability < 1:
            raise RegardError(f"dropout: {probability} is not possible; it must be at least 0 and below 1.")
        self.probability = probability

    @property
    def idle(self) -> bool:
        """Whether it leaves everything as it is."""
        return not self.training or self.probability == 0

    def forward(self, x: Tensor) -> Tensor:
        """dropout(x)"""
        if self.idle:
            return x
        dropped: Tensor = _Dropped.apply(x, *_draw(self.probability))  # type: ignore[no-untyped-call]
        return dropped

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """residual + dropout(x)"""
        if self.idle:
            return residual + x
        total: Tensor = _DroppedAndAdded.apply(x, residual, *_draw(self.probability))  # type: ignore[no-untyped-call]
        return total

    def relu(self, x: Tensor) -> Tensor:
        """dropout(max(x, 0))"""
        if self.idle:
            return torch.relu(x)
        positive: Tensor = _DroppedRelu.apply(x, *_draw(self.probability))  # type: ignore[no-untyped-call]
        return positive

    def extra_repr(self) -> str:
        return f"{self.probability}"


def _draw(probability: float) -> tuple[int, int, float]:
    """A key from PyTorch's generator, the threshold below which a hash drops, and the scale of what is kept."""
    key = int(torch.randint(-(1 << 63), (1 << 63) - 1, ()).item())
    return key, min(round(probability * (1 << 32)), _LOW), 1 / (1 - probability)


def keep_mask(shape: torch.Size, key: int, threshold: int, device: torch.device) -> Tensor:
    """The hash in tensor algebra: True where an element is kept. What dropout.c computes, bit for bit."""
    at = torch.arange(shape.numel(), device=device)
    x = (at & _LOW) ^ (key & _LOW)
    x = (_hash(x) + ((key >> 32) & _LOW) + (at >> 32)) & _LOW
    return (_hash(x) >= threshold).view(shape)


def _hash(x: Tensor) -> Tensor:
    # The products stay below 2^63: 32 bits times 31 bits, and the second factor is taken modulo 2^32 in two halves.
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & _LOW
    x = x ^ (x >> 15)
    x = (x * 0x046CA68B + ((x & 1) << 31)) & _LOW  # 0x846ca68b = 2^31 + 0x046ca68b
    return x ^ (x >> 16)


def _call(name: str, tensors: list[Tensor], key: int, threshold: int, scale: float) -> None:
    size = tensors[0].numel()
    numbers = [size, key & _LOW, (key >> 32) & _LOW, threshold, scale]
    native.call(name, tensors, numbers, count=-(-size // BLOCK), work=size)


def _dropped(x: Tensor, key: int, threshold: int, scale: float) -> Tensor:
    if not native.serves(x):
        return torch.where(keep_mask(x.shape, key, threshold, x.device), x * scale, 0)
    x = x.contiguous()
    out = torch.empty_like(x)
    _call("regard_dropout_forward", [x, out], key, threshold, scale)
    return out


class _Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, key: int, threshold: int, scale: float) -> Tensor:
        ctx.draw = key, threshold, scale
        return _dropped(x, key, threshold, scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        return _dropped(g, *ctx.draw), None, None, None


class _DroppedAndAdded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, residual: Tensor, key: int, threshold: int, scale: float) -> Tensor:
        ctx.draw = key, threshold, scale
        if x.shape != residual.shape:
            raise RegardError(f"residual: {tuple(residual.shape)} does not fit {tuple(x.shape)}.")
        if not native.serves(x, residual):
            return residual + _dropped(x, key, threshold, scale)
        x, residual = x.contiguous(), residual.contiguous()
        out = torch.empty_like(x)
        _call("regard_dropout_add_forward", [x, residual, out], key, threshold, scale)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        return _dropped(g, *ctx.draw), g, None, None, None


class _DroppedRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, key: int, threshold: int, scale: float) -> Tensor:
        ctx.scale = scale
        if native.serves(x):
            x = x.contiguous()
            out = torch.empty_like(x)
            _call("regard_dropout_relu_forward", [x, out], key, threshold, scale)
        else:
            out = _dropped(torch.relu(x), key, threshold, scale)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        (out,) = ctx.saved_tensors
        if not native.serves(out, g):
            return torch.where(out > 0, g * ctx.scale, 0), None, None, None
        g = g.contiguous()
        dx = torch.empty_like(g)
        size = g.numel()
        count = -(-size // BLOCK)
        native.call("regard_dropout_relu_backward", [out, g, dx], [size, ctx.scale], count=count, work=size)
        return dx, None, None, None
