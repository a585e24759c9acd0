"""The call by reference.py itself: slow and plain. Every other kernel is tested against it."""

from regard.attention import reference
from regard.attention.call import Call, KernelOutput
from regard.attention.positions.base import Position


def unsupported_reason(call: Call) -> str | None:
    """Why this kernel cannot serve, or None."""
    if call.dropout:
        return "the reference has no dropout"
    if call.raw is None:
        return "the reference starts from keys as they were given, and these are prepared already"
    if call.normalizer.samples:
        return "the reference draws no positions; use eval mode"
    return None


def run(call: Call) -> KernelOutput:
    """All four stages, as specified."""
    bias = call.bias()
    gauss = call.falloff()
    query, key = call.query, call.key
    if call.position is None or type(call.position).transform is Position.transform:
        # A specification starts from raw queries and keys, unless a position has transformed the features.
        assert call.raw is not None
        query = call.raw[0].expand(-1, query.shape[1], -1, -1)
        key = call.raw[1].expand(-1, call.value.shape[1], -1, -1)
    output, w = reference.attend(
        query,
        key,
        call.value,
        score=lambda q, k: call.score.specification(q, k) * call.scale,
        allowed=call.allowed,
        bias=bias,
        normalize=call.normalizer.specification,
        gauss=None if gauss is None else gauss.to(call.query.dtype),
    )
    if call.position is not None and call.position.adds_values:
        output = output + call.position.values(w, call.query_positions, call.key_positions)
    return KernelOutput(output, w)
