"""Which kernel will run, and why.

Every kernel states what it does not support and why. The planner takes the first that supports the call and is
efficient, in the order short, window, sdpa, dense, tiled, and moves on to tiles where a kernel would have to store a
large Tq x Tk matrix. A kernel chosen by name either runs or raises with its reason; nothing falls back silently.
"""

from dataclasses import dataclass, field
from types import ModuleType

from regard.attention import catalog
from regard.attention.call import Call
from regard.attention.extents.window import Window
from regard.attention.kernels import dense, reference_kernel, sdpa, short, tiled, window
from regard.errors import RegardError

LARGE_BYTES = 16 << 20  # a Tq x Tk matrix above this is computed in tiles

KERNELS: dict[str, ModuleType] = {
    "short": short,
    "sdpa": sdpa,
    "window": window,
    "dense": dense,
    "tiled": tiled,
    "reference": reference_kernel,
}


@dataclass(frozen=True)
class Plan:
    """Which kernel runs a call, why, and why the others do not. Print it."""

    kernel: str
    why: str
    scores: str
    weights: str
    memory: str
    declined: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"kernel   {self.kernel}: {catalog.KERNELS[self.kernel]}", f"why      {self.why}"]
        lines += [f"scores   {self.scores}", f"weights  {self.weights}", f"memory   {self.memory}"]
        lines += [f"not      {name}: {reason}" for name, reason in self.declined.items()]
        return "\n".join(lines)


def plan_call(call: Call, backend: str = "auto") -> Plan:
    """The plan of one call. Raises RegardError if a backend requested by name cannot serve, with the reason."""
    if backend == "auto":
        kernel, why, declined = _choose(call)
    else:
        kernel, why, declined = _check_named(call, backend), "requested by name", {}
    return Plan(
        kernel, why, _describe_scores(call, kernel), _describe_weights(call, kernel), _memory(call, kernel), declined
    )


def choose(call: Call, backend: str) -> str:
    """The kernel's name only, without a plan: called for every call."""
    return _choose(call)[0] if backend == "auto" else _check_named(call, backend)


def check_backend(backend: str) -> None:
    """Raise RegardError if there is no such kernel."""
    if backend != "auto" and backend not in KERNELS:
        raise RegardError(f"backend: there is no {backend!r}; the choices are auto, {', '.join(KERNELS)}.")


def _check_named(call: Call, backend: str) -> str:
    check_backend(backend)
    if reason := KERNELS[backend].unsupported_reason(call):
        raise RegardError(f"backend: {backend!r} cannot serve this call: {reason}.")
    return backend


def _choose(call: Call) -> tuple[str, str, dict[str, str]]:
    if short.inefficient_reason(call) is None and short.unsupported_reason(call) is None:
        return "short", "softmax over dot products of few positions: nothing is faster than small loops", {}
    fused = sdpa.unsupported_reason(call)
    if fused is None and sdpa.is_plain(call):  # the common case, decided first
        return "sdpa", "softmax over dot products with nothing masked: fused, nothing large is stored", {}
    declined: dict[str, str] = {}
    if call.extent.form == "band":
        reason = window.unsupported_reason(call) or window.inefficient_reason(call)
        if reason is None:
            return "window", "only the neighborhood of each query is computed", declined
        declined["window"] = reason
        if fused is None and _reachable_fraction(call) <= 0.5:
            return "tiled", "each tile of queries reads only the keys in its reach", declined
    if fused is None:
        size = sdpa.mask_elements(call) * call.query.element_size()
        if size <= LARGE_BYTES:
            return "sdpa", "softmax over dot products: fused, no Tq x Tk matrix but the mask is stored", declined
        declined["sdpa"] = f"its mask would take {_format_size(size)}"
    else:
        declined["sdpa"] = fused
    size = _dense_bytes(call)
    reachable = _reachable_fraction(call)
    if size <= LARGE_BYTES and reachable > 0.5:
        return "dense", f"one matrix of scores is {_format_size(size)}, small enough to hold", declined
    declined["dense"] = (
        f"one matrix of scores would take {_format_size(size)}"
        if size > LARGE_BYTES
        else f"only {reachable:.0%} of the pairs are in reach"
    )
    return "tiled", "tile by tile, so that memory grows with T and not with its square", declined


def _dense_bytes(call: Call) -> int:
    B, H, Tq, _ = call.query.shape
    return B * H * Tq * call.key.shape[2] * call.query.element_size()


def _reachable_fraction(call: Call) -> float:
    """The approximate fraction of keys that a tile of queries can reach."""
    if not isinstance(call.extent, Window) or not call.key.shape[2]:
        return 1.0
    rows = tiled.rows_in_tile(call)
    return min(1.0, (rows + 2 * call.extent.radius + call.extent.global_tokens) / call.key.shape[2])


def _describe_scores(call: Call, kernel: str) -> str:
    if kernel == "reference":
        return "reference.py"
    return call.score.describe(call.query)


def _describe_weights(call: Call, kernel: str) -> str:
    if kernel == "reference":
        return "reference.py"
    return (
        f"{call.normalizer.name}, fused"
        if kernel in ("short", "sdpa", "window")
        else call.normalizer.describe(call.query)
    )


def _memory(call: Call, kernel: str) -> str:
    if kernel == "sdpa":
        size = sdpa.mask_elements(call) * call.query.element_size()
        return f"linear in T, and a mask of {_format_size(size)}" if size else "linear in T"
    if kernel in ("window", "tiled"):
        return "linear in T"
    return f"quadratic in T: {_format_size(_dense_bytes(call))} a matrix"


def _format_size(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
