"""Keeps NaN and infinity in masked positions from spreading, around any kernel: in all of them 0 x NaN is NaN.

They are searched for only where that is cheap. In inference the output is checked: if it is finite, nothing spread.
With gradients the inputs are checked. On accelerators, and under torch.compile, reading a number back would cost more
than it saves: there masked keys are set to zero beforehand.

`project_finite` keeps them out of the gradients of a projection's weights, `run_guarded` out of everything else.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from regard.attention.call import Call, KernelOutput
from regard.attention.kernels import tiled
from regard.attention.kernels.grouped_query import repeat_heads


def project_finite(project: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """project(x), the rows of x [..., T, width] that are not finite giving rows of NaN and no gradient to anyone.

    A projection's weights have a gradient that sums over all rows, and 0 x NaN would spoil it.
    """
    if not torch.is_grad_enabled() or not _can_inspect(x) or _finite(x):
        return project(x)
    nonfinite = ~x.isfinite().all(-1, keepdim=True)
    return project(x.masked_fill(nonfinite, 0)).masked_fill(nonfinite, torch.nan)


def run_guarded(run: Callable[[Call], KernelOutput], call: Call) -> KernelOutput:
    """The output of `run` as if masked positions were finite."""
    if not _can_inspect(call.query):
        return run(_zero_masked_keys(call))
    if not call.needs_grad:
        state = torch.get_rng_state() if call.normalizer.samples else None
        outcome = run(call)
        if _finite(_rows_to_inspect(call, outcome.output)):
            return outcome
        if state is not None:
            torch.set_rng_state(state)
    elif _finite(call.query) and _finite(call.key) and _finite(call.value):
        return run(call)
    nonfinite_query = ~call.query.isfinite().all(-1)  # [B, H, Tq]
    nonfinite_key = ~(call.key.isfinite().all(-1) & call.value.isfinite().all(-1))  # [B, G, Tk]
    if not nonfinite_query.any() and not nonfinite_key.any():
        return run(call)
    clean = replace(
        call,
        query=call.query.masked_fill(nonfinite_query[..., None], 0),
        key=call.key.masked_fill(nonfinite_key[..., None], 0),
        value=call.value.masked_fill(nonfinite_key[..., None], 0),
        centers=None if call.centers is None else call.centers.masked_fill(nonfinite_query, 0),
        raw=None if call.raw is None else (_finite_rows(call.raw[0]), _finite_rows(call.raw[1])),
    )
    outcome = run(clean)
    affected = _affected_rows(clean, nonfinite_query, nonfinite_key)
    weights = None if outcome.weights is None else outcome.weights.masked_fill(affected[..., None], torch.nan)
    return replace(outcome, output=outcome.output.masked_fill(affected[..., None], torch.nan), weights=weights)


def _finite_rows(x: Tensor) -> Tensor:
    return x.masked_fill(~x.isfinite().all(-1, keepdim=True), 0)


def _can_inspect(x: Tensor) -> bool:
    readable = x.device.type == "cpu" and not torch.compiler.is_compiling()
    return readable and not torch._C._functorch.is_functorch_wrapped_tensor(x)


def _finite(x: Tensor) -> bool:
    """One pass, one number: a sum is finite only if every term is. (A sum that overflows only costs time.)"""
    wide = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else None
    return bool(x.detach().sum(dtype=wide).isfinite())


def _rows_to_inspect(call: Call, output: Tensor) -> Tensor:
    """With only a causal extent the last query sees every key that any query sees: its row is enough."""
    sees_all = call.offset + call.query.shape[2] >= call.key.shape[2]
    only_causal = call.extent.form == "causal" and call.mask is None and call.normalizer.is_softmax
    return output[:, :, -1:] if only_causal and sees_all else output


def _affected_rows(call: Call, nonfinite_query: Tensor, nonfinite_key: Tensor) -> Tensor:
    """Rows [B, H, Tq] that may attend to something not finite, or are not finite and may attend anywhere."""
    B, H = call.query.shape[:2]
    nonfinite_key = repeat_heads(nonfinite_key[..., None], H)[..., 0]  # [B, H, Tk]
    affected = torch.zeros_like(nonfinite_query)
    for tile in tiled.tiles(call):
        tile_call = tile.select(call)
        allowed = tile_call.allowed
        allowed = torch.ones((), dtype=torch.bool, device=nonfinite_key.device) if allowed is None else allowed
        visible = allowed.expand(B, H, tile.stop - tile.start, tile_call.key.shape[2])
        rows = slice(tile.start, tile.stop)
        nonfinite = tile.keys(nonfinite_key)[:, :, None]
        affected[:, :, rows] = (visible & nonfinite).any(-1) | (nonfinite_query[:, :, rows] & visible.any(-1))
    return affected


def _zero_masked_keys(call: Call) -> Call:
    """Keys and values that a mask over keys hides, set to zero."""
    if call.mask is None or call.mask.shape[-2] != 1:
        return call
    hidden = ~call.mask if call.mask.dtype == torch.bool else call.mask == -torch.inf  # [., ., 1, Tk]
    if hidden.shape[1] != 1:
        hidden = hidden.all(1, keepdim=True)
    hidden = hidden.transpose(-2, -1)
    return replace(call, key=call.key.masked_fill(hidden, 0), value=call.value.masked_fill(hidden, 0))
