"""Any combination of stages in memory that grows with T, not with T squared.

Queries are taken a tile of rows at a time, and a tile attends only to the keys that its extent can reach, so a window
also takes time that grows with T. For gradients each tile is recomputed in the backward pass instead of being
stored (Chen et al. 2016, arXiv:1604.06174). A tile runs by sdpa where that supports it, else by the dense stages.

Results are written into tensors allocated beforehand. Anything that outlived its tile would be placed among the tile's
large temporaries and fragment the heap: freed memory could not be reused for the next tile, and would grow with T
squared after all.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from regard.attention.call import Call, KernelOutput
from regard.attention.extents.base import KeyRange
from regard.attention.extents.window import Window
from regard.attention.kernels import dense, sdpa
from regard.attention.normalizers.base import Draw
from regard.attention.scores.base import Pairwise

TILE_BYTES = 4 << 20  # of one matrix of scores
MIN_TILE_ROWS = 32


def unsupported_reason(call: Call) -> str | None:
    """Tiles serve everything."""
    return None


def rows_in_tile(call: Call) -> int:
    """How many queries one tile holds."""
    (B, H, Tq, _), Tk = call.query.shape, call.key.shape[2]
    needed = Tq
    if isinstance(call.extent, Window):
        needed = max(2 * MIN_TILE_ROWS, int(call.extent.radius))
        Tk = min(Tk, 3 * needed + call.extent.global_tokens)
    max_rows = TILE_BYTES // max(1, B * H * Tk * call.query.element_size())
    return max(1, min(Tq, needed, max(MIN_TILE_ROWS, max_rows)))


def run(call: Call) -> KernelOutput:
    """Serve one call."""
    if not call.query.shape[2]:
        return dense.run(call)
    if not call.needs_grad:
        return _Results.from_call(call).outcome(*_forward(call, _kernel(call)))
    # Parameters and mode as they are now, even if they change before the backward pass.
    call = replace(
        call,
        score=_snapshot(call.score),
        normalizer=_snapshot(call.normalizer),
        position=_snapshot(call.position),
    )
    if torch.compiler.is_compiling() or _captures_weights(call):
        return _checkpointed(call)
    inputs = [call.query, call.key, call.value, call.mask, call.centers, *_learned_parameters(call)]
    return _Results.from_call(call).outcome(*_Tiles.apply(call, _kernel(call), *inputs))  # type: ignore[no-untyped-call]


Part = TypeVar("Part")


def _snapshot(component: Part) -> Part:
    """A copy with its current tensors and mode: a module may change mode or parameters before the backward pass."""
    if not isinstance(component, nn.Module):
        return component
    copied = copy.copy(component)
    copied._parameters, copied._buffers = dict(component._parameters), dict(component._buffers)
    copied._modules = {name: _snapshot(inner) for name, inner in component._modules.items()}
    return copied


@dataclass(frozen=True)
class _Tile:
    """Queries start ... stop - 1, and the ranges of keys that they can reach."""

    start: int
    stop: int
    key_ranges: list[KeyRange]

    def keys(self, x: Tensor, dim: int = 2) -> Tensor:
        """The part of x that lies along keys."""
        parts = [x.narrow(dim, low, high - low) for low, high in self.key_ranges]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim)

    def select(self, call: Call) -> Call:
        """The call restricted to this tile."""
        tile_call = call.rows(self.start, self.stop)
        if self.key_ranges == [(0, call.key.shape[2])]:
            return tile_call
        mask = tile_call.mask if tile_call.mask is None else self.keys(tile_call.mask, 3)
        positions = torch.cat([torch.arange(low, high, device=call.key.device) for low, high in self.key_ranges])
        return replace(tile_call, key=self.keys(call.key), value=self.keys(call.value), mask=mask, key_index=positions)


def tiles(call: Call) -> Iterator[_Tile]:
    """The call cut into tiles."""
    (Tq, Tk), rows = (call.query.shape[2], call.key.shape[2]), rows_in_tile(call)
    for start in range(0, Tq, rows):
        stop = min(start + rows, Tq)
        key_ranges = call.extent.key_ranges(call.offset + start, call.offset + stop - 1, Tk)
        key_ranges = [(min(low, Tk), min(high, Tk)) for low, high in key_ranges if low < min(high, Tk)]
        yield _Tile(start, stop, key_ranges or [(0, min(1, Tk))])  # nothing in reach: any key, which is masked


@dataclass(frozen=True)
class _Results:
    """Which tensors a call produces: the output, and for hard attention the draw."""

    draws: bool  # positions, log-probabilities and entropies
    weights: bool  # sampled weights cannot be recomputed, so they are stored if needed

    @staticmethod
    def from_call(call: Call) -> "_Results":
        return _Results(call.normalizer.draws, call.normalizer.samples and call.keep_weights)

    def collect(self, outcome: KernelOutput, tile_call: Call, keys: int) -> list[Tensor]:
        """One tile's results, as if it had attended to all keys."""
        results = [outcome.output]
        if self.draws:
            assert outcome.draw is not None
            position, log_prob, entropy = outcome.draw
            results += [log_prob, entropy, position if tile_call.key_index is None else tile_call.key_index[position]]
        if self.weights:
            assert outcome.weights is not None
            w = outcome.weights
            if tile_call.key_index is not None:
                w = w.new_zeros(*w.shape[:3], keys).index_copy(3, tile_call.key_index, w)
            results.append(w)
        return results

    def outcome(self, output: Tensor, *more: Tensor) -> KernelOutput:
        """All tiles' results as one."""
        draw = Draw(more[2], more[0], more[1]) if self.draws else None
        return KernelOutput(output, more[-1] if self.weights else None, draw)


def _kernel(call: Call) -> Callable[[Call], KernelOutput]:
    """The kernel that runs inside tiles: chosen once for all of them, forward and backward."""
    return dense.run if sdpa.unsupported_reason(call) else sdpa.run


def _forward(call: Call, run: Callable[[Call], KernelOutput]) -> list[Tensor]:
    """All tiles, one after the other, into tensors allocated before the first."""
    (B, H, Tq, _), Tk, Dv = call.query.shape, call.key.shape[2], call.value.shape[3]
    results = _Results.from_call(call)
    buffers = [call.query.new_empty(B, H, Tq, Dv)]
    if results.draws:
        buffers += [call.query.new_empty(B, H, Tq) for _ in range(2)]
        buffers += [torch.empty(B, H, Tq, dtype=torch.long, device=call.query.device)]
    if results.weights:
        buffers += [call.query.new_empty(B, H, Tq, Tk)]
    for tile in tiles(call):
        tile_call = tile.select(call)
        for buffer, component in zip(buffers, results.collect(run(tile_call), tile_call, Tk), strict=True):
            buffer[:, :, tile.start : tile.stop] = component
    return buffers


class _Tiles(torch.autograd.Function):
    """Forward without storing tiles, backward by recomputing each."""

    @staticmethod
    def forward(
        ctx: Any, call: Call, run: Callable[[Call], KernelOutput], *inputs: Tensor | None
    ) -> tuple[Tensor, ...]:
        empty = call.query.new_empty(0)
        ctx.call = replace(call, query=empty, key=empty, value=empty, mask=None, centers=None, raw=None)
        ctx.save_for_backward(*inputs)
        ctx.run = run
        ctx.random = _random_state(call.query.device) if _is_stochastic(call) else None
        device = call.query.device.type
        ctx.autocast = (device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
        results = _forward(call, run)
        ctx.mark_non_differentiable(*(x for x in results if not x.is_floating_point()))
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *output_gradients: Tensor) -> tuple[Tensor | None, ...]:
        inputs: tuple[Tensor | None, ...] = ctx.saved_tensors
        query, key, value, mask, centers, *weights = inputs
        call: Call = replace(ctx.call, query=query, key=key, value=value, mask=mask, centers=centers)
        needed = ctx.needs_input_grad[2:]
        grads = [
            torch.zeros_like(x) if x is not None and needs else None for x, needs in zip(inputs, needed, strict=True)
        ]
        current_state = _random_state(call.query.device)
        if ctx.random is not None:
            _set_random_state(call.query.device, ctx.random)
        device, enabled, dtype = ctx.autocast
        with torch.autocast(device, dtype=dtype, enabled=enabled):
            for tile in tiles(call):
                _tile_backward(tile, call, ctx.run, weights, output_gradients, grads)
        if ctx.random is not None:
            _set_random_state(call.query.device, current_state)
        return (None, None, *grads)


def _tile_backward(
    tile: _Tile,
    call: Call,
    run: Callable[[Call], KernelOutput],
    weights: list[Tensor | None],
    output_gradients: tuple[Tensor, ...],
    grads: list[Tensor | None],
) -> None:
    """Recompute one tile and add its gradients to `grads` (query, key, value, mask, centers, weights)."""
    tile_call = tile.select(call)
    names = ("query", "key", "value", "mask", "centers")
    leaves = {
        name: getattr(tile_call, name).detach().requires_grad_()
        for name, grad in zip(names, grads[: len(names)], strict=True)
        if grad is not None
    }
    with torch.enable_grad():
        tile_call = replace(tile_call, **leaves)
        results = _Results.from_call(call).collect(run(tile_call), tile_call, call.key.shape[2])
    differentiable = [
        (result, gradient[:, :, tile.start : tile.stop])
        for result, gradient in zip(results, output_gradients, strict=True)
        if result.requires_grad
    ]
    if not differentiable:
        return
    trainable = [
        (w, grad) for w, grad in zip(weights, grads[len(names) :], strict=True) if w is not None and grad is not None
    ]
    gradients = torch.autograd.grad(
        [result for result, _ in differentiable],
        [*leaves.values(), *(w for w, _ in trainable)],
        [gradient for _, gradient in differentiable],
        allow_unused=True,
    )
    for name, gradient in zip(leaves, gradients, strict=False):
        grad = grads[names.index(name)]
        if gradient is not None and grad is not None:
            _add(tile, name, grad, gradient)
    for (_, grad), gradient in zip(trainable, gradients[len(leaves) :], strict=True):
        if gradient is not None:
            grad.add_(gradient)


def _add(tile: _Tile, name: str, grad: Tensor, gradient: Tensor) -> None:
    """Add a tile's gradient where it belongs."""
    if name not in ("key", "value") and grad.shape[2] > 1:
        grad = grad[:, :, tile.start : tile.stop]
    if name in ("query", "centers"):
        grad += gradient
        return
    along = 3 if name == "mask" else 2
    offset = 0
    for low, high in tile.key_ranges:
        grad.narrow(along, low, high - low).add_(gradient.narrow(along, offset, high - low))
        offset += high - low


def _is_stochastic(call: Call) -> bool:
    """Whether recomputing could give another result. A function may be random."""
    return call.normalizer.samples or call.dropout > 0 or call.score.compare == "function"


def _random_state(device: torch.device) -> list[Tensor]:
    states = [torch.get_rng_state()]
    return states if device.type == "cpu" else [*states, getattr(torch, device.type).get_rng_state()]


def _set_random_state(device: torch.device, states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if device.type != "cpu":
        getattr(torch, device.type).set_rng_state(states[1])


def _learned_parameters(call: Call) -> list[nn.Parameter]:
    """Parameters of the score, the normalizer and the position."""
    parts: tuple[object, ...] = (call.score, call.normalizer, call.position)
    return [
        p for component in parts if isinstance(component, nn.Module) for p in component.parameters() if p.requires_grad
    ]


def _captures_weights(call: Call) -> bool:
    """Whether a function captures parameters: checked with one query and one key without gradients."""
    if call.score.compare != "function":
        return False
    if isinstance(call.score.function if isinstance(call.score, Pairwise) else call.score, nn.Module):
        return False
    with torch.enable_grad():
        return call.score.pairs(call.query[:, :, :1].detach(), call.key[:, :, :1].detach()).requires_grad


def _checkpointed(call: Call) -> KernelOutput:
    """The same by PyTorch's checkpoints, which find captured parameters and work under torch.compile."""
    results = _Results.from_call(call)
    run, random = _kernel(call), _is_stochastic(call)
    parts = []
    for tile in tiles(call):

        def compute(query: Tensor, key: Tensor, value: Tensor, tile: _Tile = tile) -> tuple[Tensor, ...]:
            tile_call = tile.select(replace(call, query=query, key=key, value=value))
            return tuple(results.collect(run(tile_call), tile_call, call.key.shape[2]))

        parts.append(
            checkpoint(compute, call.query, call.key, call.value, use_reentrant=False, preserve_rng_state=random)
        )
    return results.outcome(*(torch.cat(each, 2) for each in zip(*parts, strict=True)))
