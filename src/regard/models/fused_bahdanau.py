"""Bahdanau's decoder over a whole target in one autograd function: attention before each step of the cell.

Step by step, autograd would add to the gradients of keys, values and weights at every step, with one small matrix
product for each. Here the keys' exponentials are computed once, attention is one call in C per step, and the gradients
of values and weights are one product over all steps. Tested against the decoder's own `step`.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard import native
from regard.attention import Additive, Attention
from regard.attention.kernels.additive import MAX_FOR_EXP
from regard.models.bfloat16_matmul import Projection, uses_bfloat16, weight_gradient
from regard.models.recurrent_layers import Cell, Unrolled


def is_supported(attention: Attention, keys: Tensor, values: Tensor) -> bool:
    """Whether `decode` supports this attention over a memory with keys [B, Ts, A] and values [B, Ts, M]."""
    score = attention.score
    if type(score) is not Additive or score.heads != 1 or score.key_heads != 1 or not native.is_supported(keys, values):
        return False
    if keys.shape[-1] % native.lanes() or values.shape[-1] % native.lanes():
        return False
    # States lie between -1 and 1, which bounds the queries.
    max_query = score.weight_query.detach().abs().sum(-1)
    if score.bias is not None:
        max_query = max_query + score.bias.detach().abs()
    return bool(max_query.amax() <= MAX_FOR_EXP) and bool(keys.detach().abs().amax() <= MAX_FOR_EXP)


def decode(
    gates: Tensor,
    initial_state: tuple[Tensor, ...],
    cell: Cell,
    context_weight: Tensor,
    score: Additive,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gates of the target embeddings [T, B, G] and the first state -> states, contexts and weights.

    `context_weight` [G, M] maps a context to its part of the gates. The memory: keys [B, Ts, A], values [B, Ts, M],
    mask [B, Ts]. Results: states [T, B, D], contexts [T, B, M], weights [T, B, Ts].
    """
    bias = score.bias[0] if score.bias is not None else score.v.new_zeros(score.width)
    out: tuple[Tensor, Tensor, Tensor] = _Decode.apply(  # type: ignore[no-untyped-call]
        uses_bfloat16(initial_state[0], cell.states.weight),
        mask.to(torch.uint8).contiguous(),
        gates.contiguous(),
        keys.contiguous(),
        values.contiguous(),
        score.weight_query[0],
        bias,
        score.v[0],
        context_weight,
        cell.states.weight,
        cell.states.bias,
        *(part.contiguous() for part in initial_state),
    )
    return out


class _Decode(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        bfloat16: bool,
        mask: Tensor,
        gates: Tensor,
        keys: Tensor,
        values: Tensor,
        query: Tensor,
        query_bias: Tensor,
        v: Tensor,
        context_weight: Tensor,
        state_weight: Tensor,
        state_bias: Tensor,
        *initial_state: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        (T, B, _), (_, Ts, A), M = gates.shape, keys.shape, values.shape[-1]
        unrolled, keys = Unrolled.empty(T, initial_state), (keys * 2).exp_()
        queries, weights, contexts = (gates.new_empty(T, B, n) for n in (A, Ts, M))
        to_query, to_gates, from_context = (Projection(w, bfloat16) for w in (query, state_weight, context_weight))
        for t in range(T):
            h = unrolled.previous_output(t)
            torch.add(to_query(h), query_bias, out=queries[t]).mul_(2).exp_()
            tensors = [queries[t], keys, v, values, mask, weights[t], contexts[t]]
            native.call("regard_attention_step_forward", tensors, [Ts, A, M], count=B, work=B * Ts * (A + M))
            unrolled.forward(t, from_context(contexts[t]).add_(gates[t]), to_gates(h).add_(state_bias))
        ctx.bfloat16 = bfloat16
        ctx.save_for_backward(
            keys,
            values,
            query,
            v,
            context_weight,
            state_weight,
            queries,
            weights,
            contexts,
            unrolled.out,
            unrolled.cells,
            unrolled.gates,
            *initial_state,
        )
        ctx.set_materialize_grads(False)
        return unrolled.out, contexts, weights

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad: Tensor | None, grad_context: Tensor | None, grad_weights: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        (
            keys,
            values,
            query,
            v,
            context_weight,
            state_weight,
            queries,
            weights,
            contexts,
            out,
            cells,
            saved_gates,
            *initial_state,
        ) = ctx.saved_tensors
        (T, B, _), (_, Ts, A), M = out.shape, keys.shape, values.shape[-1]
        unrolled, bfloat16 = Unrolled(tuple(initial_state), out, cells, saved_gates), ctx.bfloat16
        to_query, to_gates, from_context = (Projection(w, bfloat16) for w in (query, state_weight, context_weight))
        gate_gradients, dh = unrolled.empty_gradients(), torch.zeros_like(initial_state[0])
        dqueries, dcontexts, dscores = (
            torch.empty_like(queries),
            torch.empty_like(contexts),
            torch.empty_like(weights[0]),
        )
        dkeys, dv = torch.zeros_like(keys), torch.zeros_like(queries[0])
        for t in reversed(range(T)):
            dh_direct = unrolled.backward(t, dh if grad is None else dh.add_(grad[t]), gate_gradients)
            dcontexts[t] = from_context.input_gradient(gate_gradients.dx[t])
            if grad_context is not None:
                dcontexts[t] += grad_context[t]
            dweights = None if grad_weights is None else grad_weights[t].contiguous()
            tensors = [queries[t], keys, v, values, weights[t], dcontexts[t], dweights, dqueries[t], dkeys, dv, dscores]
            native.call("regard_attention_step_backward", tensors, [Ts, A, M], count=B, work=B * Ts * (A + M))
            dh = dh_direct.add_(to_gates.input_gradient(gate_gradients.ds[t])).add_(
                to_query.input_gradient(dqueries[t])
            )
        previous, ds, dq = (
            unrolled.previous_outputs().flatten(0, 1),
            gate_gradients.ds.flatten(0, 1),
            dqueries.flatten(0, 1),
        )
        return (
            None,
            None,
            gate_gradients.dx,
            dkeys.mul_(4 * v),
            torch.bmm(weights.permute(1, 2, 0), dcontexts.transpose(0, 1)),
            weight_gradient(dq, previous, bfloat16),
            dq.sum(0),
            dv.sum(0),
            weight_gradient(gate_gradients.dx.flatten(0, 1), contexts.flatten(0, 1), bfloat16),
            weight_gradient(ds, previous, bfloat16),
            ds.sum(0),
            *((dh,) if gate_gradients.dc is None else (dh, gate_gradients.dc)),
        )
