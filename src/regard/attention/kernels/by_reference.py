"""The call by reference.py itself: slow, plain, and what every other kernel is held to."""

from regard.attention import reference
from regard.attention.call import Call, Outcome
from regard.attention.extents import LocalPredictive
from regard.attention.normalizers import Hard
from regard.attention.scores import Additive, Bilinear


def unsupported_reason(call: Call) -> str | None:
    """Why this kernel cannot serve, or None."""
    if call.dropout:
        return "the reference has no dropout"
    if call.raw is None:
        return "the reference starts from keys as they were given, and these are prepared already"
    if isinstance(call.normalizer, Hard) and call.normalizer.training:
        return "the reference draws no positions; use eval mode"
    return None


def run(call: Call) -> Outcome:
    """All four stages, as specified."""
    bias = call.bias()
    gauss = None
    if isinstance(call.extent, LocalPredictive):
        assert call.centers is not None
        gauss = reference.gaussian(call.centers, call.key_positions, call.extent.radius).to(call.query.dtype)
    query, key = call.query, call.key
    if isinstance(call.score, Bilinear | Additive):  # these start from what they were given, not from features
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
        gauss=gauss,
    )
    if call.position is not None and call.position.adds_values:
        output = output + call.position.values(w, call.query_positions, call.key_positions)
    return Outcome(output, w)
