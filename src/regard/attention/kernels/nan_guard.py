"""Keeps NaN and infinity in masked positions from spreading, around any kernel: in all of them 0 x NaN is NaN.

They are looked for only where looking is cheap. In inference the output tells: if it is finite no harm was done. For
gradients the inputs tell. On accelerators, and while being compiled, reading a number back would cost more than it
brings: there the keys that a mask hides are cleared beforehand.

`project_finite` keeps them out of the gradients of a projection's weights, `run_guarded` out of everything else.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from regard.attention.call import Call, Outcome
from regard.attention.kernels import tiled
from regard.attention.kernels.grouped_query import repeat_heads


def project_finite(project: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """project(x), the rows of x [..., T, width] that are not finite giving rows of NaN and no gradient to anyone.

    A projection's weights have a gradient that sums over all rows, and 0 x NaN would spoil it.
    """
    if not torch.is_grad_enabled() or not _can_inspect(x) or _finite(x):
        return project(x)
    bad = ~x.isfinite().all(-1, keepdim=True)
    return project(x.masked_fill(bad, 0)).masked_fill(bad, torch.nan)


def run_guarded(run: Callable[[Call], Outcome], call: Call) -> Outcome:
    """What `run` gives, as if masked positions had been finite."""
    if not _can_inspect(call.query):
        return run(_zero_masked_keys(call))
    if not call.needs_grad:
        state = torch.get_rng_state() if call.normalizer.samples else None
        outcome = run(call)
        if _finite(_rows_that_show_it(call, outcome.output)):
            return outcome
        if state is not None:
            torch.set_rng_state(state)
    elif _finite(call.query) and _finite(call.key) and _finite(call.value):
        return run(call)
    bad_query = ~call.query.isfinite().all(-1)  # [B, H, Tq]
    bad_key = ~(call.key.isfinite().all(-1) & call.value.isfinite().all(-1))  # [B, G, Tk]
    if not bad_query.any() and not bad_key.any():
        return run(call)
    clean = replace(
        call,
        query=call.query.masked_fill(bad_query[..., None], 0),
        key=call.key.masked_fill(bad_key[..., None], 0),
        value=call.value.masked_fill(bad_key[..., None], 0),
        centers=None if call.centers is None else call.centers.masked_fill(bad_query, 0),
        raw=None if call.raw is None else (_finite_rows(call.raw[0]), _finite_rows(call.raw[1])),
    )
    outcome = run(clean)
    touched = _rows_that_see(clean, bad_query, bad_key)
    kept = None if outcome.weights is None else outcome.weights.masked_fill(touched[..., None], torch.nan)
    return replace(outcome, output=outcome.output.masked_fill(touched[..., None], torch.nan), weights=kept)


def _finite_rows(x: Tensor) -> Tensor:
    return x.masked_fill(~x.isfinite().all(-1, keepdim=True), 0)


def _can_inspect(x: Tensor) -> bool:
    numbers_at_hand = x.device.type == "cpu" and not torch.compiler.is_compiling()
    return numbers_at_hand and not torch._C._functorch.is_functorch_wrapped_tensor(x)


def _finite(x: Tensor) -> bool:
    """One pass, one number: a sum is finite only if every term is. (A sum that overflows only costs time.)"""
    wide = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else None
    return bool(x.detach().sum(dtype=wide).isfinite())


def _rows_that_show_it(call: Call, output: Tensor) -> Tensor:
    """With nothing but a causal extent the last query sees every key that any query sees: its row tells for all."""
    sees_all = call.offset + call.query.shape[2] >= call.key.shape[2]
    only_causal = call.extent.form == "causal" and call.mask is None and call.normalizer.is_softmax
    return output[:, :, -1:] if only_causal and sees_all else output


def _rows_that_see(call: Call, bad_query: Tensor, bad_key: Tensor) -> Tensor:
    """Rows that may look at something not finite, or are not finite themselves and may look anywhere. [B, H, Tq]."""
    B, H = call.query.shape[:2]
    bad_key = repeat_heads(bad_key[..., None], H)[..., 0]  # [B, H, Tk]
    touched = torch.zeros_like(bad_query)
    for tile in tiled.tiles(call):
        piece = tile.cut(call)
        allowed = piece.allowed
        allowed = torch.ones((), dtype=torch.bool, device=bad_key.device) if allowed is None else allowed
        reach = allowed.expand(B, H, tile.stop - tile.start, piece.key.shape[2])
        rows = slice(tile.start, tile.stop)
        bad = tile.keys(bad_key)[:, :, None]
        touched[:, :, rows] = (reach & bad).any(-1) | (bad_query[:, :, rows] & reach.any(-1))
    return touched


def _zero_masked_keys(call: Call) -> Call:
    """Keys and values that a mask over keys hides, set to zero."""
    if call.mask is None or call.mask.shape[-2] != 1:
        return call
    hidden = ~call.mask if call.mask.dtype == torch.bool else call.mask == -torch.inf  # [., ., 1, Tk]
    if hidden.shape[1] != 1:
        hidden = hidden.all(1, keepdim=True)
    hidden = hidden.transpose(-2, -1)
    return replace(call, key=call.key.masked_fill(hidden, 0), value=call.value.masked_fill(hidden, 0))
