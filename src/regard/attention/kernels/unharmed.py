"""Keeps NaN and infinity in masked places from spreading, around any kernel: in all of them 0 x NaN is NaN.

They are looked for only where looking is cheap. In inference the output tells: if it is finite no harm was done. For
gradients the inputs tell. On accelerators, and while being compiled, reading a number back would cost more than it
brings: there the keys that a mask hides are cleared beforehand.

Two doors: `projected` keeps them out of the gradients of a projection's weights, `unharmed` out of everything else.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from regard.attention.call import Call, Outcome
from regard.attention.normalisers import Hard

ROWS_BYTES = 8 << 20  # of one boolean matrix


def projected(project: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """project(x), the rows of x [..., T, width] that are not finite giving rows of NaN and no gradient to anyone.

    A projection's weights have a gradient that sums over all rows, and 0 x NaN would spoil it.
    """
    if not torch.is_grad_enabled() or not _can_look(x) or _finite(x):
        return project(x)
    bad = ~x.isfinite().all(-1, keepdim=True)
    return project(x.masked_fill(bad, 0)).masked_fill(bad, torch.nan)


def unharmed(run: Callable[[Call], Outcome], call: Call) -> Outcome:
    """What `run` gives, as if masked places had been finite."""
    if not _can_look(call.query):
        return run(_cleared(call))
    if not call.needs_grad:
        state = torch.get_rng_state() if isinstance(call.normalise, Hard) else None
        outcome = run(call)
        if _finite(outcome.output) and (outcome.weights is None or _finite(outcome.weights)):
            return outcome
        if state is not None:
            torch.set_rng_state(state)
    elif _finite(call.query) and _finite(call.key) and _finite(call.value):
        return run(call)
    bad_query = ~call.query.isfinite().all(-1)  # [B, H, Tq]
    bad_key = ~(call.key.isfinite().all(-1) & call.value.isfinite().all(-1))  # [B, G, Tk]
    clean = replace(
        call,
        query=call.query.masked_fill(bad_query[..., None], 0),
        key=call.key.masked_fill(bad_key[..., None], 0),
        value=call.value.masked_fill(bad_key[..., None], 0),
        centres=None if call.centres is None else call.centres.masked_fill(bad_query, 0),
    )
    outcome = run(clean)
    touched = _touched(clean, bad_query, bad_key)
    kept = None if outcome.weights is None else outcome.weights.masked_fill(touched[..., None], torch.nan)
    return replace(outcome, output=outcome.output.masked_fill(touched[..., None], torch.nan), weights=kept)


def _can_look(x: Tensor) -> bool:
    numbers_at_hand = x.device.type == "cpu" and not torch.compiler.is_compiling()
    return numbers_at_hand and not torch._C._functorch.is_functorch_wrapped_tensor(x)


def _finite(x: Tensor) -> bool:
    """One pass, one number: a sum is finite only if every term is. (A sum that overflows only costs time.)"""
    return bool(x.detach().sum().isfinite())


def _touched(call: Call, bad_query: Tensor, bad_key: Tensor) -> Tensor:
    """Rows that may look at something not finite, or are not finite themselves and may look anywhere. [B, H, Tq]."""
    (B, H, Tq, _), (G, Tk) = call.query.shape, call.key.shape[1:3]
    bad = bad_key.repeat_interleave(H // G, 1)[:, :, None]  # [B, H, 1, Tk]
    parts = []
    rows = max(1, ROWS_BYTES // max(1, B * H * Tk))
    for start in range(0, Tq, rows):
        piece = call.rows(start, min(start + rows, Tq))
        allowed = piece.allowed
        allowed = torch.ones((), dtype=torch.bool, device=bad.device) if allowed is None else allowed
        reach = allowed.expand(B, H, piece.query.shape[2], Tk)
        parts.append((reach & bad).any(-1) | (bad_query[:, :, start : start + rows] & reach.any(-1)))
    return torch.cat(parts, 2) if parts else bad_query


def _cleared(call: Call) -> Call:
    """Keys and values that a mask over keys hides, set to zero."""
    if call.mask is None or call.mask.shape[-2] != 1:
        return call
    hidden = ~call.mask if call.mask.dtype == torch.bool else call.mask == -torch.inf  # [., ., 1, Tk]
    if hidden.shape[1] != 1:
        hidden = hidden.all(1, keepdim=True)
    hidden = hidden.transpose(-2, -1)
    return replace(call, key=call.key.masked_fill(hidden, 0), value=call.value.masked_fill(hidden, 0))
