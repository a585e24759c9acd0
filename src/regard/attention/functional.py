"""`attend`: every mechanism of the family through one function."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Never, overload

import torch
from torch import Tensor, nn

from regard.attention.arguments import RENAMED_KEYWORDS, build_call, reject_unknown_keywords
from regard.attention.cache import Cache
from regard.attention.call import Call, KernelOutput
from regard.attention.extents.base import Extent
from regard.attention.kernels import dense
from regard.attention.kernels.nan_guard import run_guarded
from regard.attention.normalizers.base import Draw, Normalizer
from regard.attention.planner import KERNELS, Plan, choose, plan_call
from regard.attention.positions.base import Position
from regard.attention.scores.base import PairwiseFunction, Score
from regard.errors import RegardError


@dataclass(frozen=True)
class AttentionOutput:
    """The result of attention. Unpacks as `output, weights = ...`."""

    output: Tensor
    weights: Tensor | None = None  # [B, H, Tq, Tk], before dropout; with need_weights
    draw: Draw | None = None  # of hard attention, for REINFORCE
    cache: Cache | None = None  # for the next step

    def __iter__(self) -> Iterator[Tensor | None]:
        return iter((self.output, self.weights))


@overload
def attend(
    query: Tensor, key: Tensor, value: Tensor, *, need_weights: Literal[False] = False, **options: Any
) -> Tensor: ...
@overload
def attend(
    query: Tensor, key: Tensor, value: Tensor, *, need_weights: Literal[True], **options: Any
) -> AttentionOutput: ...
def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: str | Score | PairwiseFunction = "scaled-dot",
    extent: str | Extent = "global",
    normalize: str | Normalizer = "softmax",
    mask: Tensor | None = None,
    scale: float | None = None,
    position: str | Position | None = None,
    dropout: float = 0.0,
    offset: int = 0,
    need_weights: bool = False,
    backend: str = "auto",
    **unknown: Never,
) -> Tensor | AttentionOutput:
    """Attention in four stages: score, restrict, normalize, sum.

    Args:
        query: [B, H, Tq, Dq].
        key: [B, G, Tk, Dk]; G divides H, and each key-value head serves H / G query heads.
        value: [B, G, Tk, Dv].
        score: "dot", "scaled-dot", "cosine", Bilinear(...), Additive(...), or a function of (query, key) that gives
            [B, H, Tq, Tk].
        extent: "global", "causal", Window(radius), LocalMonotonic(radius) or LocalPredictive(width, radius=...).
        normalize: "softmax", "sparsemax", "entmax" or Entmax(alpha), "sigmoid", "none", or "hard" or Hard(estimator),
            which draws a key; Hard().eval() takes the best.
        mask: broadcasts to [B, H, Tq, Tk]. Boolean: True = may attend. Float: added to the scores, -inf forbids.
        scale: multiplies the scores; 1 / sqrt(Dq) for scaled-dot and 1 for the others if not given.
        position: "rotary", "alibi", "shaw", "t5" or an object of attention/positions.
        dropout: the share of weights dropped. As in PyTorch's functions it acts whenever it is not 0.
        offset: the position of the first query; keys start at 0. A cached step passes the number of keys before it.
        need_weights: return `AttentionOutput` with the weights. The output is the same to the last bit.
        backend: "auto", or a kernel by name ("sdpa", "window", "dense", "tiled", "reference").

    Returns:
        [B, H, Tq, Dv]; or, with need_weights, `AttentionOutput(output, weights, draw)`.

    A row with nothing to attend to gives zeros and finite gradients. NaN or infinity in a position does no harm to rows
    that may not attend there. Second derivatives, forward mode and torch.func: backend="dense" or "reference".

    Raises:
        ValueError: an argument that does not fit, in one sentence that names it.
    """
    if unknown:
        reject_unknown_keywords("attend()", unknown)
    call = build_call(query, key, value, score, extent, normalize, mask, scale, position, dropout, offset)
    if not need_weights:
        return compute(call, need_weights=False, backend=backend).output
    outcome = compute(call, need_weights=True, backend=backend)
    return AttentionOutput(outcome.output, outcome.weights, outcome.draw)


def weights(
    query: Tensor,
    key: Tensor,
    *,
    rows: slice | None = None,
    heads: Sequence[int] | None = None,
    score: str | Score | PairwiseFunction = "scaled-dot",
    extent: str | Extent = "global",
    normalize: str | Normalizer = "softmax",
    mask: Tensor | None = None,
    scale: float | None = None,
    position: str | Position | None = None,
    offset: int = 0,
    **unknown: Never,
) -> Tensor:
    """The weights alone, of some queries and heads: for a sequence too long for all of them.

    rows=slice(0, 10), heads=[3] -> [B, 1, 10, Tk]. The other arguments are those of `attend`.
    """
    if unknown:
        reject_unknown_keywords("weights()", unknown)
    call = build_call(query, key, key[..., :0], score, extent, normalize, mask, scale, position, 0.0, offset)
    H, Tq = call.query.shape[1:3]
    if heads is not None:
        unknown_heads = [h for h in heads if not -H <= h < H]
        if unknown_heads:
            raise RegardError(f"heads: there is no head {unknown_heads[0]}; there are {H}, counted from 0.")
        call = call.select_heads(torch.tensor([h % H for h in heads], dtype=torch.long, device=query.device))
    if rows is not None:
        start, stop, step = rows.indices(Tq)
        if step != 1:
            raise RegardError("rows: a slice with a step is not possible; take the rows you want from the result.")
        call = call.rows(start, max(start, stop))
    return dense.weights(call)[0]


def plan(query: Tensor, key: Tensor, value: Tensor, *, backend: str = "auto", **options: Any) -> Plan:
    """Which kernel `attend` would run with these arguments, and why. No attention is computed.

    Tensors on the "meta" device, which have a shape but no numbers, are planned for as if on the processor.
    """
    options.pop("need_weights", None)
    defaults = {"score": "scaled-dot", "extent": "global", "normalize": "softmax", "dropout": 0.0, "offset": 0}
    known = {*defaults, "mask", "scale", "position"}
    if unknown := set(options) - known:
        if renamed := unknown & set(RENAMED_KEYWORDS):
            reject_unknown_keywords("plan()", dict.fromkeys(renamed))
        raise TypeError(f"plan() takes the arguments of attend(), and {sorted(unknown)[0]!r} is not one of them.")
    arguments = {**dict.fromkeys(known), **defaults, **options}
    if query.is_meta:  # learned modules must be on the meta device too
        modules = {name: part for name, part in arguments.items() if isinstance(part, nn.Module)}
        arguments |= {name: copy.deepcopy(part).to("meta") for name, part in modules.items()}
    return plan_call(build_call(query, key, value, **arguments), backend)


def compute(call: Call, *, need_weights: bool, backend: str) -> KernelOutput:
    """Run one call, guarded against NaN and infinity in masked positions, with the weights if need_weights."""
    if call.normalizer.draws and not need_weights and call.needs_grad:
        raise RegardError(
            "normalize: Hard('reinforce') needs its draw for the gradient, so set need_weights=True and pass "
            "the draw to Reinforce; or use Hard('gumbel'), or call .eval() for the best position."
        )
    kernel = KERNELS[choose(call, backend)]
    if not need_weights:
        return run_guarded(kernel.run, call) if call.restricted else kernel.run(call)

    def with_weights(call: Call) -> KernelOutput:
        outcome: KernelOutput = kernel.run(call)
        return outcome if outcome.weights is not None else replace(outcome, weights=dense.weights(call)[0])

    call = replace(call, keep_weights=True)
    return run_guarded(with_weights, call) if call.restricted else with_weights(call)
