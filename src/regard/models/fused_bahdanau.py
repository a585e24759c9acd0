"""Bahdanau's decoder over a whole target at once: every step looks at the memory, then the cell steps.

Step by step, autograd would add to the gradients of keys, values and weights at every step, and multiply a small matrix
for each. Here the memory's exponentials are taken once, each look is one call in C, and the gradients of values and
weights are one product over all steps. Held to the decoder's own `step`.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard import native
from regard.attention import Additive, Attention
from regard.attention.kernels.additive import LARGEST_FOR_EXP
from regard.models.bfloat16_matmul import Product, uses_bfloat16, weight_gradient
from regard.models.recurrent_layers import Cell, Unrolled


def serves(attention: Attention, keys: Tensor, values: Tensor) -> bool:
    """Whether `decode` can take this attention to a memory with keys [B, Ts, A] and values [B, Ts, M]."""
    score = attention.score
    if type(score) is not Additive or score.heads != 1 or score.key_heads != 1 or not native.serves(keys, values):
        return False
    if keys.shape[-1] % native.lanes() or values.shape[-1] % native.lanes():
        return False
    # A state's numbers lie between -1 and 1, so that no query can be larger than this.
    largest = score.weight_query.detach().abs().sum(-1)
    if score.bias is not None:
        largest = largest + score.bias.detach().abs()
    return bool(largest.amax() <= LARGEST_FOR_EXP) and bool(keys.detach().abs().amax() <= LARGEST_FOR_EXP)


def decode(
    gates: Tensor,
    first: tuple[Tensor, ...],
    cell: Cell,
    beside: Tensor,
    score: Additive,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Words' gates [T, B, G] and the first state -> states [T, B, D], contexts [T, B, M] and weights [T, B, Ts].

    `beside` [G, M] turns a context into its share of the gates. EncoderOutput: keys [B, Ts, A], values [B, Ts, M], mask
    [B, Ts].
    """
    bias = score.bias[0] if score.bias is not None else score.v.new_zeros(score.width)
    out: tuple[Tensor, Tensor, Tensor] = _Decode.apply(  # type: ignore[no-untyped-call]
        uses_bfloat16(first[0], cell.states.weight),
        mask.to(torch.uint8).contiguous(),
        gates.contiguous(),
        keys.contiguous(),
        values.contiguous(),
        score.weight_query[0],
        bias,
        score.v[0],
        beside,
        cell.states.weight,
        cell.states.bias,
        *(part.contiguous() for part in first),
    )
    return out


class _Decode(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rounded: bool,
        mask: Tensor,
        gates: Tensor,
        keys: Tensor,
        values: Tensor,
        query: Tensor,
        query_bias: Tensor,
        v: Tensor,
        beside: Tensor,
        states: Tensor,
        states_bias: Tensor,
        *first: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        (T, B, _), (_, Ts, A), M = gates.shape, keys.shape, values.shape[-1]
        run, keys = Unrolled.empty(T, first), (keys * 2).exp_()
        queries, weights, contexts = (gates.new_empty(T, B, n) for n in (A, Ts, M))
        to_query, to_gates, from_context = (Product(w, rounded) for w in (query, states, beside))
        for t in range(T):
            h = run.before(t)
            torch.add(to_query(h), query_bias, out=queries[t]).mul_(2).exp_()
            tensors = [queries[t], keys, v, values, mask, weights[t], contexts[t]]
            native.call("regard_attention_step_forward", tensors, [Ts, A, M], count=B, work=B * Ts * (A + M))
            run.forward(t, from_context(contexts[t]).add_(gates[t]), to_gates(h).add_(states_bias))
        ctx.rounded = rounded
        ctx.save_for_backward(
            keys, values, query, v, beside, states, queries, weights, contexts, run.out, run.cells, run.kept, *first
        )
        ctx.set_materialize_grads(False)
        return run.out, contexts, weights

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, g: Tensor | None, g_context: Tensor | None, g_weights: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        keys, values, query, v, beside, states, queries, weights, contexts, out, cells, kept, *first = ctx.saved_tensors
        (T, B, _), (_, Ts, A), M = out.shape, keys.shape, values.shape[-1]
        run, rounded = Unrolled(tuple(first), out, cells, kept), ctx.rounded
        to_query, to_gates, from_context = (Product(w, rounded) for w in (query, states, beside))
        slopes, dh = run.slopes(), torch.zeros_like(first[0])
        dqueries, dcontexts, room = torch.empty_like(queries), torch.empty_like(contexts), torch.empty_like(weights[0])
        dkeys, dv = torch.zeros_like(keys), torch.zeros_like(queries[0])
        for t in reversed(range(T)):
            straight = run.back(t, dh if g is None else dh.add_(g[t]), slopes)
            dcontexts[t] = from_context.back(slopes.dx[t])
            if g_context is not None:
                dcontexts[t] += g_context[t]
            asked = None if g_weights is None else g_weights[t].contiguous()
            tensors = [queries[t], keys, v, values, weights[t], dcontexts[t], asked, dqueries[t], dkeys, dv, room]
            native.call("regard_attention_step_backward", tensors, [Ts, A, M], count=B, work=B * Ts * (A + M))
            dh = straight.add_(to_gates.back(slopes.ds[t])).add_(to_query.back(dqueries[t]))
        before, ds, dq = run.outputs_before().flatten(0, 1), slopes.ds.flatten(0, 1), dqueries.flatten(0, 1)
        return (
            None,
            None,
            slopes.dx,
            dkeys.mul_(4 * v),
            torch.bmm(weights.permute(1, 2, 0), dcontexts.transpose(0, 1)),
            weight_gradient(dq, before, rounded),
            dq.sum(0),
            dv.sum(0),
            weight_gradient(slopes.dx.flatten(0, 1), contexts.flatten(0, 1), rounded),
            weight_gradient(ds, before, rounded),
            ds.sum(0),
            *((dh,) if slopes.dc is None else (dh, slopes.dc)),
        )
