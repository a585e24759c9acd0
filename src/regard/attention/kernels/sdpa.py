"""PyTorch's fused softmax attention, used only where it is fused.

On the processor `scaled_dot_product_attention` runs its flash kernel only with no dropout, equal head widths, a mask
of two or four dimensions that needs no gradient and a contiguous last dimension; otherwise it silently computes and
stores everything. Inputs are converted to that form where possible; the rest is declined here, and another kernel runs.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from regard.attention.call import Call, KernelOutput


def unsupported_reason(call: Call) -> str | None:
    """Why this kernel cannot serve, or None."""
    if call.score.compare != "dot":
        return f"sdpa compares by dot products, the {call.score.name} score does not"
    if not call.normalizer.is_softmax:
        return f"sdpa normalizes by softmax, not by {call.normalizer.name}"
    if call.extent.form == "predicted":
        return f"sdpa multiplies no weights after the softmax, which {call.extent.name} needs"
    if call.dropout and not call.query.is_cuda:
        return "sdpa is not fused with dropout on the processor"
    if call.position is not None and call.position.adds_values:
        return f"sdpa does not support the output term of {call.position.name} positions"
    if torch.is_grad_enabled() and call.mask is not None and call.mask.requires_grad:
        return "sdpa is not fused when the mask needs a gradient"
    if call.position is not None and call.position.learns and call.needs_grad:
        return f"sdpa is not fused when the bias of {call.position.name} positions is being learned"
    return None


def mask_elements(call: Call) -> int:
    """How many numbers the mask would have that this call needs."""
    if is_plain(call) or is_causal_only(call):
        return 0
    (H, Tq), Tk = call.query.shape[1:3], call.key.shape[2]
    if call.mask is not None and not call.extent_masks and call.position is None:
        return call.mask.numel()
    mask_batch, mask_heads = (1, 1) if call.mask is None else (call.mask.shape[0], call.mask.shape[1])
    return mask_batch * (H if call.position is not None else mask_heads) * Tq * Tk


def is_plain(call: Call) -> bool:
    """Nothing is masked or added."""
    return call.mask is None and not call.extent_masks and (call.position is None or not call.position.adds_bias)


def is_causal_only(call: Call) -> bool:
    """The one restriction that sdpa has as an option."""
    no_bias = call.position is None or not call.position.adds_bias
    from_start = call.offset == 0 and call.key_index is None
    return call.extent.form == "causal" and call.mask is None and no_bias and from_start


def run(call: Call) -> KernelOutput:
    """Serve one call."""
    query, key, value = call.query, call.key, call.value
    if query.stride(-1) != 1 or key.stride(-1) != 1 or value.stride(-1) != 1:
        query, key, value = (x.contiguous() for x in (query, key, value))
    width, value_width = query.shape[-1], value.shape[-1]
    if width < value_width:  # zeros change no dot product
        query, key = (pad(x, (0, value_width - width)) for x in (query, key))
    elif value_width < width:
        value = pad(value, (0, width - value_width))
    plain = is_plain(call)
    causal = not plain and is_causal_only(call)
    output = scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=None if plain or causal else _mask(call),
        is_causal=causal,
        dropout_p=call.dropout,
        scale=call.scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return KernelOutput(output if width <= value_width else output[..., :value_width])


def _mask(call: Call) -> Tensor:
    mask = call.bias()
    if mask is None:
        assert call.allowed is not None
        mask = call.allowed
    else:
        already_masked = call.mask is not None and call.mask.dtype != torch.bool and not call.extent_masks
        if call.allowed is not None and not already_masked:
            mask = mask.masked_fill(~call.allowed, -torch.inf)
        mask = mask.to(call.query.dtype)
    while mask.ndim < 4:
        mask = mask[None]
    return mask
