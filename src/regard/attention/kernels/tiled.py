"""Any cell of the grid in memory that grows with T, not with T squared.

Queries are taken a tile of rows at a time, and a tile looks only at the keys that its extent can reach, so a window
also takes time that grows with T. For gradients each tile is computed again on the way back instead of being stored
(Chen et al. 2016, arXiv:1604.06174). Inside a tile sdpa serves where it can, else the dense stages.

Results are written into tensors made beforehand. Anything that outlived its tile would come to lie among the tile's
large temporaries, and a memory allocator then finds no whole room for the next tile's: what is counted as freed would
still be held, and grow with T squared after all.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from regard.attention.call import Call, Outcome
from regard.attention.extents.base import Span
from regard.attention.extents.window import Window
from regard.attention.kernels import dense, sdpa
from regard.attention.normalizers.base import Draw
from regard.attention.scores.base import Pairwise

TILE_BYTES = 4 << 20  # of one matrix of scores
SMALLEST_TILE = 32


def unsupported_reason(call: Call) -> str | None:
    """Tiles serve everything."""
    return None


def rows_in_tile(call: Call) -> int:
    """How many queries one tile holds."""
    (B, H, Tq, _), Tk = call.query.shape, call.key.shape[2]
    wanted = Tq
    if isinstance(call.extent, Window):
        wanted = max(2 * SMALLEST_TILE, int(call.extent.radius))
        Tk = min(Tk, 3 * wanted + call.extent.global_tokens)
    fit = TILE_BYTES // max(1, B * H * Tk * call.query.element_size())
    return max(1, min(Tq, wanted, max(SMALLEST_TILE, fit)))


def run(call: Call) -> Outcome:
    """Serve one call."""
    if not call.query.shape[2]:
        return dense.run(call)
    if not call.needs_grad:
        return _Results.of(call).outcome(*_forward(call, _kernel(call)))
    # The weights and the mode of now, whatever they are when gradients are wanted.
    call = replace(
        call,
        score=_snapshot(call.score),
        normalizer=_snapshot(call.normalizer),
        position=_snapshot(call.position),
    )
    if torch.compiler.is_compiling() or _captures_weights(call):
        return _checkpointed(call)
    inputs = [call.query, call.key, call.value, call.mask, call.centers, *_weights(call)]
    return _Results.of(call).outcome(*_Tiles.apply(call, _kernel(call), *inputs))  # type: ignore[no-untyped-call]


Part = TypeVar("Part")


def _snapshot(part: Part) -> Part:
    """A part with the tensors and the mode it has now: a module may be switched, or lent other weights, later on."""
    if not isinstance(part, nn.Module):
        return part
    kept = copy.copy(part)
    kept._parameters, kept._buffers = dict(part._parameters), dict(part._buffers)
    kept._modules = {name: _snapshot(inner) for name, inner in part._modules.items()}
    return kept


@dataclass(frozen=True)
class _Tile:
    """Queries start ... stop - 1, and the ranges of keys that they can reach."""

    start: int
    stop: int
    spans: list[Span]

    def keys(self, x: Tensor, dim: int = 2) -> Tensor:
        """The part of x that lies along keys."""
        parts = [x.narrow(dim, low, high - low) for low, high in self.spans]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim)

    def cut(self, call: Call) -> Call:
        """The call of this tile alone."""
        piece = call.rows(self.start, self.stop)
        if self.spans == [(0, call.key.shape[2])]:
            return piece
        mask = piece.mask if piece.mask is None else self.keys(piece.mask, 3)
        positions = torch.cat([torch.arange(low, high, device=call.key.device) for low, high in self.spans])
        return replace(piece, key=self.keys(call.key), value=self.keys(call.value), mask=mask, key_index=positions)


def tiles(call: Call) -> Iterator[_Tile]:
    """The call cut into tiles."""
    (Tq, Tk), rows = (call.query.shape[2], call.key.shape[2]), rows_in_tile(call)
    for start in range(0, Tq, rows):
        stop = min(start + rows, Tq)
        spans = call.extent.spans(call.offset + start, call.offset + stop - 1, Tk)
        spans = [(min(low, Tk), min(high, Tk)) for low, high in spans if low < min(high, Tk)]
        yield _Tile(start, stop, spans or [(0, min(1, Tk))])  # nothing in reach: any key will do, it is forbidden


@dataclass(frozen=True)
class _Results:
    """Which tensors a call leaves behind: the output, and for hard attention what was drawn."""

    draws: bool  # positions, log-probabilities and entropies
    weights: bool  # drawn weights cannot be had again, so they are kept if wanted

    @staticmethod
    def of(call: Call) -> "_Results":
        return _Results(call.normalizer.draws, call.normalizer.samples and call.keep_weights)

    def of_tile(self, outcome: Outcome, piece: Call, keys: int) -> list[Tensor]:
        """One tile's results, as if it had looked at all keys."""
        results = [outcome.output]
        if self.draws:
            assert outcome.draw is not None
            position, log_prob, entropy = outcome.draw
            results += [log_prob, entropy, position if piece.key_index is None else piece.key_index[position]]
        if self.weights:
            assert outcome.weights is not None
            w = outcome.weights
            if piece.key_index is not None:
                w = w.new_zeros(*w.shape[:3], keys).index_copy(3, piece.key_index, w)
            results.append(w)
        return results

    def outcome(self, output: Tensor, *more: Tensor) -> Outcome:
        """All tiles' results as one."""
        draw = Draw(more[2], more[0], more[1]) if self.draws else None
        return Outcome(output, more[-1] if self.weights else None, draw)


def _kernel(call: Call) -> Callable[[Call], Outcome]:
    """What serves inside the tiles: decided once for all of them, and for the way back."""
    return dense.run if sdpa.unsupported_reason(call) else sdpa.run


def _forward(call: Call, run: Callable[[Call], Outcome]) -> list[Tensor]:
    """All tiles, one after the other, into tensors made before the first."""
    (B, H, Tq, _), Tk, Dv = call.query.shape, call.key.shape[2], call.value.shape[3]
    results = _Results.of(call)
    made = [call.query.new_empty(B, H, Tq, Dv)]
    if results.draws:
        made += [call.query.new_empty(B, H, Tq) for _ in range(2)]
        made += [torch.empty(B, H, Tq, dtype=torch.long, device=call.query.device)]
    if results.weights:
        made += [call.query.new_empty(B, H, Tq, Tk)]
    for tile in tiles(call):
        piece = tile.cut(call)
        for whole, part in zip(made, results.of_tile(run(piece), piece, Tk), strict=True):
            whole[:, :, tile.start : tile.stop] = part
    return made


class _Tiles(torch.autograd.Function):
    """Forward without storing, backward by computing each tile again."""

    @staticmethod
    def forward(ctx: Any, call: Call, run: Callable[[Call], Outcome], *inputs: Tensor | None) -> tuple[Tensor, ...]:
        none = call.query.new_empty(0)
        ctx.call = replace(call, query=none, key=none, value=none, mask=None, centers=None, raw=None)
        ctx.save_for_backward(*inputs)
        ctx.run = run
        ctx.random = _random_state(call.query.device) if _is_random(call) else None
        device = call.query.device.type
        ctx.autocast = (device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
        results = _forward(call, run)
        ctx.mark_non_differentiable(*(x for x in results if not x.is_floating_point()))
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        inputs: tuple[Tensor | None, ...] = ctx.saved_tensors
        query, key, value, mask, centers, *weights = inputs
        call: Call = replace(ctx.call, query=query, key=key, value=value, mask=mask, centers=centers)
        wanted = ctx.needs_input_grad[2:]
        grads = [
            torch.zeros_like(x) if x is not None and want else None for x, want in zip(inputs, wanted, strict=True)
        ]
        now = _random_state(call.query.device)
        if ctx.random is not None:
            _set_random_state(call.query.device, ctx.random)
        device, enabled, dtype = ctx.autocast
        with torch.autocast(device, dtype=dtype, enabled=enabled):
            for tile in tiles(call):
                _tile_backward(tile, call, ctx.run, weights, slopes, grads)
        if ctx.random is not None:
            _set_random_state(call.query.device, now)
        return (None, None, *grads)


def _tile_backward(
    tile: _Tile,
    call: Call,
    run: Callable[[Call], Outcome],
    weights: list[Tensor | None],
    slopes: tuple[Tensor, ...],
    grads: list[Tensor | None],
) -> None:
    """Compute one tile again and add its gradients to `grads` (query, key, value, mask, centers, weights)."""
    piece = tile.cut(call)
    names = ("query", "key", "value", "mask", "centers")
    fresh = {
        name: getattr(piece, name).detach().requires_grad_()
        for name, grad in zip(names, grads[: len(names)], strict=True)
        if grad is not None
    }
    with torch.enable_grad():
        piece = replace(piece, **fresh)
        results = _Results.of(call).of_tile(run(piece), piece, call.key.shape[2])
    learning = [
        (result, slope[:, :, tile.start : tile.stop])
        for result, slope in zip(results, slopes, strict=True)
        if result.requires_grad
    ]
    if not learning:
        return
    learned = [
        (w, grad) for w, grad in zip(weights, grads[len(names) :], strict=True) if w is not None and grad is not None
    ]
    found = torch.autograd.grad(
        [result for result, _ in learning],
        [*fresh.values(), *(w for w, _ in learned)],
        [slope for _, slope in learning],
        allow_unused=True,
    )
    for name, slope in zip(fresh, found, strict=False):
        grad = grads[names.index(name)]
        if slope is not None and grad is not None:
            _add(tile, name, grad, slope)
    for (_, grad), slope in zip(learned, found[len(fresh) :], strict=True):
        if slope is not None:
            grad.add_(slope)


def _add(tile: _Tile, name: str, grad: Tensor, slope: Tensor) -> None:
    """Add a tile's gradient where it belongs."""
    if name not in ("key", "value") and grad.shape[2] > 1:
        grad = grad[:, :, tile.start : tile.stop]
    if name in ("query", "centers"):
        grad += slope
        return
    along = 3 if name == "mask" else 2
    at = 0
    for low, high in tile.spans:
        grad.narrow(along, low, high - low).add_(slope.narrow(along, at, high - low))
        at += high - low


def _is_random(call: Call) -> bool:
    """Whether computing it again could give something else. What a function does nobody knows."""
    return call.normalizer.samples or call.dropout > 0 or call.score.compare == "function"


def _random_state(device: torch.device) -> list[Tensor]:
    states = [torch.get_rng_state()]
    return states if device.type == "cpu" else [*states, getattr(torch, device.type).get_rng_state()]


def _set_random_state(device: torch.device, states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if device.type != "cpu":
        getattr(torch, device.type).set_rng_state(states[1])


def _weights(call: Call) -> list[nn.Parameter]:
    """What the score, the normalizer and the position learn."""
    parts: tuple[object, ...] = (call.score, call.normalizer, call.position)
    return [p for part in parts if isinstance(part, nn.Module) for p in part.parameters() if p.requires_grad]


def _captures_weights(call: Call) -> bool:
    """Whether a function learns something that only it knows of: asked on one query and one key without gradients."""
    if call.score.compare != "function":
        return False
    if isinstance(call.score.function if isinstance(call.score, Pairwise) else call.score, nn.Module):
        return False
    with torch.enable_grad():
        return call.score.pairs(call.query[:, :, :1].detach(), call.key[:, :, :1].detach()).requires_grad


def _checkpointed(call: Call) -> Outcome:
    """The same by PyTorch's own checkpoints, which find such weights, and which its compiler understands."""
    results = _Results.of(call)
    run, random = _kernel(call), _is_random(call)
    parts = []
    for tile in tiles(call):

        def compute(query: Tensor, key: Tensor, value: Tensor, tile: _Tile = tile) -> tuple[Tensor, ...]:
            piece = tile.cut(replace(call, query=query, key=key, value=value))
            return tuple(results.of_tile(run(piece), piece, call.key.shape[2]))

        parts.append(
            checkpoint(compute, call.query, call.key, call.value, use_reentrant=False, preserve_rng_state=random)
        )
    return results.outcome(*(torch.cat(each, 2) for each in zip(*parts, strict=True)))
