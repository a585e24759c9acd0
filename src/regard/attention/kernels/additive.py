"""Additive scores, v' tanh(a + b) for every query and key, without ever storing [Tq, Tk, A].

Bahdanau et al. 2014 (arXiv:1409.0473). Three forms of the same algebra, chosen by the size of the numbers:

    exp     tanh(a + b) = 1 - 2 / (1 + e^2a e^2b)         exponentials once per query and once per key
    expm1   tanh(a + b) = N / (N + 2), N = e^2(a+b) - 1   the same, accurate relative to tanh near zero
    tanh    tanh(a + b) itself                            where e^2a would overflow, or something is not finite

"exp" is exact to rounding for |a|, |b| <= 40: e^80 is finite in float32, and if the product of two exponentials
overflows to infinity or underflows to zero, tanh is 1 or -1 to the last bit, which is what the formula gives.
Runs in C where a compiler was found (`native`), else tile by tile in PyTorch. The backward pass recomputes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard import native
from regard.attention.kernels.torch_operators import needs_plain_operators, operator

MAX_FOR_EXP = 40.0
MAX_FOR_EXPM1 = 0.5
# Elements of [tile of slices, queries, keys, A] held at once: about a megabyte, inside the L2 cache. An accelerator
# needs few large steps.
TILE_ELEMENTS = 1 << 18
ACCELERATOR_TILE_ELEMENTS = 1 << 26


def additive_scores(a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    """a [B, H, Tq, A], b [B, H, Tk, A], v [H, A] -> scores [B, H, Tq, Tk] = sum_d v_d tanh(a_d + b_d)."""
    if a.dtype in (torch.float16, torch.bfloat16):
        return additive_scores(a.float(), b.float(), v.float()).to(a.dtype)
    b, v = b.to(a.dtype), v.to(a.dtype)  # under autocast they may differ
    if needs_plain_operators(a):
        return (torch.tanh(a[:, :, :, None] + b[:, :, None]) * v[:, None, None]).sum(-1)
    scores: Tensor = _scores(a, b, v)
    return scores


def uses_native_kernel(a: Tensor) -> bool:
    """Whether such queries are scored by the C kernel (unless their numbers are too large for it)."""
    return a.device.type in ("cpu", "meta") and a.dtype != torch.float64 and native.library() is not None


@operator(
    "additive_scores_backward(Tensor g, Tensor a, Tensor b, Tensor v) -> (Tensor, Tensor, Tensor)",
    fake=lambda g, a, b, v: (a.new_empty(a.shape), b.new_empty(b.shape), v.new_empty(v.shape)),
)
def _gradients(g: Tensor, a: Tensor, b: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    B, H, Tq, A = a.shape
    Tk = b.shape[2]
    if not g.numel() or not A:
        return a.new_zeros(a.shape), b.new_zeros(b.shape), v.new_zeros(v.shape)
    g = g.reshape(B * H, Tq, Tk).contiguous()
    form = _choose_form(a, b)
    if form != "tanh" and uses_native_kernel(a):
        da, db, dv = _native_gradients(_Prepared.from_inputs(a, b, v, form, native.lanes()), g)
    else:
        da, db, dv = _pytorch_gradients(_Prepared.from_inputs(a, b, v, form), g)
    return (
        da[..., :A].reshape(B, H, Tq, A).contiguous(),
        db[..., :A].reshape(B, H, Tk, A).contiguous(),
        dv[..., :A].reshape(B, H, A).sum(0),
    )


def _save(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if torch.is_grad_enabled():  # second derivatives: plain code has them
        return _plain_gradients(grad, *ctx.saved_tensors)
    gradients: tuple[Tensor, Tensor, Tensor] = _gradients(grad, *ctx.saved_tensors)
    return gradients


def _plain_gradients(g: Tensor, a: Tensor, b: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    t = torch.tanh(a[:, :, :, None] + b[:, :, None])  # [B, H, Tq, Tk, A]
    weighted_slope = g[..., None] * v[:, None, None] * (1 - t * t)
    return weighted_slope.sum(3), weighted_slope.sum(2), (g[..., None] * t).sum((0, 2, 3))


@operator(
    "additive_scores(Tensor a, Tensor b, Tensor v) -> Tensor",
    fake=lambda a, b, v: a.new_empty(*a.shape[:3], b.shape[2]),
    save=_save,
    backward=_backward,
)
def _scores(a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    B, H, Tq, _ = a.shape
    scores = a.new_zeros(B * H, Tq, b.shape[2])
    if scores.numel() and a.shape[-1]:
        form = _choose_form(a, b)
        if form != "tanh" and uses_native_kernel(a):
            _native_scores(_Prepared.from_inputs(a, b, v, form, native.lanes()), scores)
        else:
            _pytorch_scores(_Prepared.from_inputs(a, b, v, form), scores)
    return scores.view(B, H, Tq, b.shape[2])


def _choose_form(a: Tensor, b: Tensor) -> str:
    max_magnitude = torch.maximum(a.detach().abs().amax(), b.detach().abs().amax()).item()
    if max_magnitude <= MAX_FOR_EXPM1:
        return "expm1"
    return "exp" if max_magnitude <= MAX_FOR_EXP else "tanh"  # also for NaN, which compares false


@dataclass(frozen=True)
class _Prepared:
    """Queries and keys in the chosen form, one slice n for each batch entry and head."""

    form: str
    a: Tensor  # [N, Tq, A]
    b: Tensor  # [N, Tk, A]
    v: Tensor  # [H, A]; slice n belongs to head n % H

    @staticmethod
    def from_inputs(a: Tensor, b: Tensor, v: Tensor, form: str, multiple: int = 1) -> "_Prepared":
        slices = [x.detach().reshape(-1, *x.shape[2:]) for x in (a, b)]
        if form != "tanh":
            slices = [(x * 2).exp_() if form == "exp" else torch.expm1(x * 2) for x in slices]
        padding = -a.shape[-1] % multiple
        a, b, v = (pad(x, (0, padding)) if padding else x.contiguous() for x in (*slices, v.detach()))
        return _Prepared(form, a, b, v)


def _native_scores(p: _Prepared, scores: Tensor) -> None:
    (N, Tq, A), Tk = p.a.shape, p.b.shape[1]
    sizes = [len(p.v), Tq, Tk, A, int(p.form == "expm1")]
    native.call("regard_additive_scores_forward", [p.a, p.b, p.v, scores], sizes, count=N * Tq, work=N * Tq * Tk * A)


def _native_gradients(p: _Prepared, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    (N, Tq, A), Tk = p.a.shape, p.b.shape[1]
    da, db, dv = torch.empty_like(p.a), torch.zeros_like(p.b), p.a.new_empty(N, A)
    sizes = [len(p.v), Tq, Tk, A, int(p.form == "expm1")]
    tensors = [p.a, p.b, p.v, g, da, db, dv]
    columns = N * (A // native.lanes())
    native.call("regard_additive_scores_backward", tensors, sizes, count=columns, work=N * Tq * Tk * A)
    return da, db, dv


def _tiles(p: _Prepared) -> Iterator[tuple[slice, slice, slice]]:
    """Slices, queries and keys of one tile after another, as many of each as fit into TILE elements."""
    (N, Tq, A), Tk = p.a.shape, p.b.shape[1]
    size = TILE_ELEMENTS if p.a.device.type == "cpu" else ACCELERATOR_TILE_ELEMENTS
    keys = max(1, min(Tk, size // A))
    queries = max(1, min(Tq, size // (A * keys)))
    slices = max(1, min(N, size // (A * keys * queries)))
    for n in range(0, N, slices):
        for i in range(0, Tq, queries):
            for j in range(0, Tk, keys):
                yield slice(n, n + slices), slice(i, i + queries), slice(j, j + keys)


def _tile_buffer(p: _Prepared) -> Tensor:
    """A buffer for the largest tile."""
    n, i, j = next(_tiles(p))
    return p.a.new_empty(p.a[n, i].numel() * p.b[n, j].shape[1])


def _view_as_tile(buffer: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The beginning of the buffer as [n, i, j, A], for a [n, i, 1, A] and b [n, 1, j, A]."""
    shape = (a.shape[0], a.shape[1], b.shape[2], a.shape[3])
    return buffer[: math.prod(shape)].view(shape)


def _tile_tanh(p: _Prepared, n: slice, i: slice, j: slice, buffer: Tensor) -> Tensor:
    """tanh(a + b) of one tile, [n, i, j, A], written into the buffer."""
    a, b = p.a[n, i, None], p.b[n, None, j]
    out = _view_as_tile(buffer, a, b)
    if p.form == "tanh":
        return torch.add(a, b, out=out).tanh_()
    if p.form == "exp":
        return torch.mul(a, b, out=out).add_(1).reciprocal_().mul_(-2).add_(1)
    torch.mul(a, b, out=out).add_(a).add_(b)
    return out.div_(out + 2)


def _pytorch_scores(p: _Prepared, scores: Tensor) -> None:
    buffer = _tile_buffer(p)
    v = p.v.repeat(len(p.a) // len(p.v), 1)  # [N, A]
    half = p.a.new_tensor(0.5)
    for n, i, j in _tiles(p):
        if p.form == "exp":  # v tanh = 2 v (1/2 - 1 / (1 + E)), the 2 put into v: one pass fewer over the tile
            a, b = p.a[n, i, None], p.b[n, None, j]
            t = torch.mul(a, b, out=_view_as_tile(buffer, a, b)).add_(1).reciprocal_()
            torch.sub(half, t, out=t)
        else:
            t = _tile_tanh(p, n, i, j, buffer)
        weight = 2 * v[n, :, None] if p.form == "exp" else v[n, :, None]
        scores[n, i, j] = torch.bmm(t.flatten(1, 2), weight).view(t.shape[:-1])


def _pytorch_gradients(p: _Prepared, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    buffer = _tile_buffer(p)
    v = p.v.repeat(len(p.a) // len(p.v), 1)
    da, db, dv = torch.zeros_like(p.a), torch.zeros_like(p.b), torch.zeros_like(v)
    for n, i, j in _tiles(p):
        t, w = _tile_tanh(p, n, i, j, buffer), g[n, i, j]
        # Row by row, then over the rows: one long sum would round more.
        dv[n] += torch.matmul(w[:, :, None], t)[:, :, 0].sum(1)
        weighted_slope = t.mul_(t).neg_().add_(1)  # tanh' = 1 - tanh^2
        da[n, i] += torch.matmul(w[:, :, None], weighted_slope)[:, :, 0]
        db[n, j] += torch.matmul(w.transpose(1, 2)[:, :, None], weighted_slope.transpose(1, 2))[:, :, 0]
    return da * v[:, None], db * v[:, None], dv
