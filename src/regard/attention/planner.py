"""Which kernel will run, and why.

Every kernel says what it refuses and why. The planner takes the first that serves and pays, in the order short,
window, sdpa, dense, tiled, and moves on to tiles where a kernel would have to hold a large Tq x Tk matrix. A kernel
asked for by name either serves or raises with its reason; nothing falls back in silence.
"""

from dataclasses import dataclass, field
from types import ModuleType

from regard.attention import catalog
from regard.attention.call import Call
from regard.attention.extents.window import Window
from regard.attention.kernels import by_reference, dense, sdpa, short, tiled, window
from regard.errors import RegardError

LARGE_BYTES = 16 << 20  # a Tq x Tk matrix above this is computed in tiles

KERNELS: dict[str, ModuleType] = {
    "short": short,
    "sdpa": sdpa,
    "window": window,
    "dense": dense,
    "tiled": tiled,
    "reference": by_reference,
}


@dataclass(frozen=True)
class Plan:
    """Which kernel serves a call, why, and why the others do not. Print it."""

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
    """The plan of one call. Raises RegardError if a backend asked for by name cannot serve, with the reason."""
    if backend == "auto":
        kernel, why, declined = _choose(call)
    else:
        kernel, why, declined = _named(call, backend), "asked for by name", {}
    return Plan(kernel, why, _how_scored(call, kernel), _how_normalized(call, kernel), _memory(call, kernel), declined)


def choose(call: Call, backend: str) -> str:
    """The kernel's name only: what runs on every call."""
    return _choose(call)[0] if backend == "auto" else _named(call, backend)


def check_backend(backend: str) -> None:
    """Raise RegardError if there is no such kernel."""
    if backend != "auto" and backend not in KERNELS:
        raise RegardError(f"backend: there is no {backend!r}; the choices are auto, {', '.join(KERNELS)}.")


def _named(call: Call, backend: str) -> str:
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
        if fused is None and _reach(call) <= 0.5:
            return "tiled", "each tile of queries reads only the keys in its reach", declined
    if fused is None:
        size = sdpa.mask_elements(call) * call.query.element_size()
        if size <= LARGE_BYTES:
            return "sdpa", "softmax over dot products: fused, no Tq x Tk matrix but the mask is stored", declined
        declined["sdpa"] = f"its mask would take {_readable(size)}"
    else:
        declined["sdpa"] = fused
    size = _dense_bytes(call)
    reach = _reach(call)
    if size <= LARGE_BYTES and reach > 0.5:
        return "dense", f"one matrix of scores is {_readable(size)}, small enough to hold", declined
    declined["dense"] = (
        f"one matrix of scores would take {_readable(size)}"
        if size > LARGE_BYTES
        else f"only {reach:.0%} of the pairs are in reach"
    )
    return "tiled", "tile by tile, so that memory grows with T and not with its square", declined


def _dense_bytes(call: Call) -> int:
    B, H, Tq, _ = call.query.shape
    return B * H * Tq * call.key.shape[2] * call.query.element_size()


def _reach(call: Call) -> float:
    """About what share of the keys a tile of queries can reach."""
    if not isinstance(call.extent, Window) or not call.key.shape[2]:
        return 1.0
    rows = tiled.rows_in_tile(call)
    return min(1.0, (rows + 2 * call.extent.radius + call.extent.global_tokens) / call.key.shape[2])


def _how_scored(call: Call, kernel: str) -> str:
    if kernel == "reference":
        return "reference.py"
    return call.score.describe(call.query)


def _how_normalized(call: Call, kernel: str) -> str:
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
        return f"linear in T, and a mask of {_readable(size)}" if size else "linear in T"
    if kernel in ("window", "tiled"):
        return "linear in T"
    return f"quadratic in T: {_readable(_dense_bytes(call))} a matrix"


def _readable(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
