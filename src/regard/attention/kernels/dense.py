"""The four stages over the whole Tq x Tk matrix: serves every cell of the grid.

Additive scores and sparse normalizers come from their own kernels; no stage ever stores [Tq, Tk, D].
"""

import torch
from torch import Tensor

from regard.attention.call import Call, KernelOutput
from regard.attention.kernels.grouped_query import grouped_matmul
from regard.attention.normalizers.base import Draw


def unsupported_reason(call: Call) -> str | None:
    """Dense serves everything."""
    return None


def weights(call: Call) -> tuple[Tensor, Draw | None]:
    """Stages 1 to 3: the weights before dropout, and the draw of hard attention."""
    query, key = call.query, call.key
    if call.score.compare == "dot" and call.scale != 1:
        query = query * call.scale
        scores = call.score.pairs(query, key, call.heads)
    else:
        scores = call.score.pairs(query, key, call.heads)
        scores = scores if call.scale == 1 else scores * call.scale
    bias = call.bias()
    if bias is not None:
        scores = scores + bias
    w, draw = call.normalizer.weights(scores, call.allowed, call.heads)
    if (falloff := call.falloff()) is not None:
        w = w * falloff.to(w.dtype)
    return w, draw


def run(call: Call) -> KernelOutput:
    """All four stages."""
    w, draw = weights(call)
    dropped = torch.nn.functional.dropout(w, call.dropout) if call.dropout else w
    output = grouped_matmul(dropped, call.value)
    if call.position is not None and call.position.adds_values:
        output = output + call.position.values(dropped, call.query_positions, call.key_positions)
    return KernelOutput(output, w, draw)
