"""Softmax attention over short sequences in C, for batches of sentences.

PyTorch's fused kernel is designed for long sequences; at a dozen tokens most of its time is setup. This one stores the
weights for the backward pass, so it is used only where they are few. Masked keys are never read.
"""

from typing import Any

import torch
from torch import Tensor

from regard import native
from regard.attention.call import Call, KernelOutput
from regard.attention.kernels.torch_operators import needs_plain_operators, operator

MAX_SIZE = 128  # keys, and width of a head: the C kernel's own limits
EFFICIENT_LENGTHS = range(4, 41)  # queries; and keys up to the same: elsewhere PyTorch's kernel is as fast


def unsupported_reason(call: Call) -> str | None:
    """Why this kernel cannot serve, or None."""
    query, key, value = call.query, call.key, call.value
    if torch.compiler.is_compiling():
        return "short is chosen when a call is made, not when it is compiled"
    if call.score.compare != "dot":
        return f"short compares by dot products, the {call.score.name} score does not"
    if not call.normalizer.is_softmax:
        return f"short normalizes by softmax, not by {call.normalizer.name}"
    if call.extent.form not in ("all", "causal"):
        return f"short knows no {call.extent.name} extent"
    if call.dropout:
        return "short has no dropout"
    if call.position is not None and call.position.adds_bias:
        return f"short does not support the bias of {call.position.name} positions"
    if query.device.type != "cpu" or query.dtype != torch.float32:
        return "short takes float32 on the processor"
    if call.mask is not None and not _is_key_mask(call.mask):
        return "short takes a mask of true and false over keys only"
    if call.key_index is not None:
        return "short wants all keys in their positions"
    if key.shape[2] > MAX_SIZE or not key.shape[2] or not query.numel():
        return f"short takes 1 to {MAX_SIZE} keys"
    lanes = native.lanes()
    if max(query.shape[-1], value.shape[-1]) > MAX_SIZE or query.shape[-1] % lanes or value.shape[-1] % lanes:
        return f"short takes widths up to {MAX_SIZE} in steps of {lanes}"
    if native.library() is None:
        return native.unavailable_reason()
    if needs_plain_operators(query):
        return "short is unknown to forward-mode derivatives and torch.func"
    return None


def inefficient_reason(call: Call) -> str | None:
    """Why another kernel would be faster, or None."""
    if call.query.shape[2] in EFFICIENT_LENGTHS and call.key.shape[2] < EFFICIENT_LENGTHS.stop:
        return None
    return f"short pays for {EFFICIENT_LENGTHS.start} to {EFFICIENT_LENGTHS.stop - 1} queries, and no more keys"


def _is_key_mask(mask: Tensor) -> bool:
    return mask.dtype == torch.bool and mask.ndim == 4 and mask.shape[1] == 1 and mask.shape[2] == 1


def run(call: Call) -> KernelOutput:
    """Serve one call."""
    query, key, value = (x if x.stride(-1) == 1 else x.contiguous() for x in (call.query, call.key, call.value))
    allowed = None if call.mask is None else call.mask[:, 0, 0]
    causal = call.extent.form == "causal"
    output, _ = _short(query, key, value, allowed, float(call.scale), call.offset, causal)
    return KernelOutput(output)


def _empty_time_major(x: Tensor, width: int) -> Tensor:
    """An empty [B, H, T, width] with heads side by side at each position in memory."""
    B, H, T, _ = x.shape
    return x.new_empty(B, T, H, width).transpose(1, 2)


def _strides(*tensors: Tensor) -> list[int]:
    return [stride for tensor in tensors for stride in tensor.stride()[:3]]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    query, key, value, allowed, ctx.scale, ctx.offset, ctx.causal = inputs
    ctx.save_for_backward(query, key, value, allowed, output[1])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, g: Tensor | None, _: Tensor | None) -> tuple[Any, ...]:
    query, key, value, allowed, weights = ctx.saved_tensors
    no_gradients = (None, None, None, None)
    if g is None:
        return None, None, None, *no_gradients
    if torch.is_grad_enabled():
        raise RuntimeError("short attention has no second derivative; use backend='dense'.")
    g = g if g.stride(-1) == 1 else g.contiguous()
    gradients = _gradients(g, query, key, value, allowed, weights, ctx.scale, ctx.offset, ctx.causal)
    return *gradients, *no_gradients


def _fake(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, scale: float, offset: int, causal: bool) -> Any:
    return _empty_time_major(q, v.shape[-1]), q.new_empty(
        *q.shape[:3], -(-k.shape[2] // native.lanes()) * native.lanes()
    )


@operator(
    "short_attention_backward(Tensor g, Tensor q, Tensor k, Tensor v, Tensor? allowed, Tensor weights, float scale, "
    "int offset, bool causal) -> (Tensor, Tensor, Tensor)",
    fake=lambda g, q, k, v, *_: tuple(_empty_time_major(x, x.shape[-1]) for x in (q, k, v)),
)
def _gradients(
    g: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    allowed: Tensor | None,
    weights: Tensor,
    scale: float,
    offset: int,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    (B, H, Tq, D), (G, Tk), Dv = q.shape, k.shape[1:3], v.shape[-1]
    dq, dk, dv = (_empty_time_major(x, x.shape[-1]) for x in (q, k, v))
    dk.zero_()
    dv.zero_()
    allowed = None if allowed is None else allowed.contiguous()
    masks = 0 if allowed is None else len(allowed)
    scalars: list[int | float | list[int]] = [
        G,
        H,
        Tq,
        Tk,
        D,
        Dv,
        _strides(q, k, v, g, dq, dk, dv),
        masks,
        int(causal),
        offset,
        scale,
    ]
    tensors = [q, k, v, allowed, weights, g, dq, dk, dv]
    native.call("regard_short_attention_backward", tensors, scalars, count=B * G, work=B * H * Tq * Tk * (D + Dv))
    return dq, dk, dv


@operator(
    "short_attention(Tensor q, Tensor k, Tensor v, Tensor? allowed, float scale, int offset, bool causal) "
    "-> (Tensor, Tensor)",
    fake=_fake,
    save=_save,
    backward=_backward,
)
def _short(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, scale: float, offset: int, causal: bool
) -> tuple[Tensor, Tensor]:
    (B, H, Tq, D), (G, Tk), Dv = q.shape, k.shape[1:3], v.shape[-1]
    out, weights = _empty_time_major(q, Dv), q.new_empty(B, H, Tq, -(-Tk // native.lanes()) * native.lanes())
    allowed = None if allowed is None else allowed.contiguous()
    masks = 0 if allowed is None else len(allowed)
    scalars: list[int | float | list[int]] = [
        G,
        H,
        Tq,
        Tk,
        D,
        Dv,
        _strides(q, k, v, out),
        masks,
        int(causal),
        offset,
        scale,
    ]
    tensors = [q, k, v, allowed, out, weights]
    native.call("regard_short_attention_forward", tensors, scalars, count=B * G, work=B * H * Tq * Tk * (D + Dv) // 2)
    return out, weights
