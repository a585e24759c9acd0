"""Windows in O(T x radius): chunks of queries with look-around over their keys, many chunks in one fused call.

Queries are cut into chunks of C. Chunk n may look at the C + 2 radius keys around it (C + radius if causal), so keys
and values are laid out as overlapping runs, and what remains is ordinary attention with a small band mask. Global
tokens are put before every run; their own rows look everywhere and are computed apart. Long sequences go segment by
segment, so that no tensor grows so large that every step pays for fresh pages of memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from regard.attention.call import Call, Outcome
from regard.attention.extents.causal import Causal
from regard.attention.extents.global_ import Global
from regard.attention.extents.window import Window
from regard.attention.kernels import sdpa

SMALLEST_CHUNK = 32
LARGEST_CHUNK = 256
LARGEST_MASKS = 64 << 20  # bytes
SEGMENT_BYTES = 4 << 20  # of keys laid out as runs


def unsupported_reason(call: Call) -> str | None:
    """Why this kernel cannot serve, or None."""
    if call.extent.form != "band":
        return f"window serves windows and local-m, not a {call.extent.name} extent"
    if reason := sdpa.unsupported_reason(call):
        return reason.replace("sdpa", "window, which is built on sdpa,", 1)
    if call.position is not None and call.position.adds_bias:
        return f"window has no place for the bias of {call.position.name} positions"
    if call.mask is not None and call.mask.shape[-2] != 1:
        return "window takes masks over keys only ([B, 1, 1, Tk]), not one row a query"
    if call.key_index is not None:
        return "window needs keys in a row"
    return None


def chunk_size(extent: Window) -> int:
    """Short chunks waste few keys, long ones few starts; about the radius is best, but the band mask is C wide."""
    return min(LARGEST_CHUNK, max(SMALLEST_CHUNK, extent.radius))


def run_length(extent: Window) -> int:
    """How many keys a chunk may look at, global tokens included."""
    return chunk_size(extent) + extent.radius * (1 if extent.causal else 2) + extent.global_tokens


def inefficient_reason(call: Call) -> str | None:
    """Why another kernel would be better, or None."""
    assert isinstance(call.extent, Window)
    length = run_length(call.extent)
    if 2 * length > call.key.shape[2] or call.query.shape[2] < 2:
        return "there is too little of the sequence outside the window to be worth cutting up"
    B, H, Tq, _ = call.query.shape
    if call.mask is not None and B * H * Tq * length * call.query.element_size() > LARGEST_MASKS:
        return f"it would store more than {LARGEST_MASKS >> 20} MiB of masks, one for each head and chunk"
    return None


def run(call: Call) -> Outcome:
    """Serve one call."""
    extent = call.extent
    assert isinstance(extent, Window)
    apart = max(0, min(extent.global_tokens - call.offset, call.query.shape[2]))
    parts = []
    if apart:
        first = replace(call.rows(0, apart), extent=Causal() if extent.causal else Global())
        parts.append(sdpa.run(first).output)
        call = call.rows(apart, call.query.shape[2])
    if call.query.shape[2] or not parts:
        parts += _segments(call, extent)
    return Outcome(parts[0] if len(parts) == 1 else torch.cat(parts, 2))


def _segments(call: Call, extent: Window) -> Iterator[Tensor]:
    """The output of one stretch of queries after another."""
    (B, H, Tq, D), Tk, Dv = call.query.shape, call.key.shape[2], call.value.shape[-1]
    if not Tq:
        yield call.query.new_zeros(B, H, 0, Dv)
        return
    C, ahead = chunk_size(extent), 0 if extent.causal else extent.radius
    bands = 1 if call.mask is None else B * H  # how many band masks a chunk has
    bytes_a_chunk = run_length(extent) * (B * H * max(D, Dv) + bands * C) * call.query.element_size()
    size = max(1, SEGMENT_BYTES // max(1, bytes_a_chunk)) * C
    # Split, not sliced: the gradients of the pieces are then put together in one go.
    queries = torch.split(call.query, size, 2)
    keys, values = torch.split(call.key, size, 2), torch.split(call.value, size, 2)
    common: Tensor | None = None  # away from the ends one band serves every chunk
    for number, query in enumerate(queries):
        offset = call.offset + number * size
        low = min(Tk, max(0, offset - extent.radius))
        high = max(low, min(Tk, offset + query.shape[2] + ahead))
        piece = replace(call, query=query, offset=offset)
        runs = _Layout(offset - extent.radius, -(-query.shape[2] // C), C, extent.radius + C + ahead)
        key, value = (_stretch(pieces, low, high, size) for pieces in (keys, values))
        if call.mask is None and runs.start >= extent.global_tokens and runs.stop <= Tk:
            common = _band(piece, extent, runs, low) if common is None else common
            band = common
        else:
            band = _band(piece, extent, runs, low)
        yield _chunks(piece, extent, runs, key, value, low, band)


@dataclass(frozen=True)
class _Layout:
    """Overlapping runs of keys, one under each chunk of queries: run n begins at start + n step, `length` long."""

    start: int
    chunks: int
    step: int
    length: int

    @property
    def stop(self) -> int:
        """The position after the last run."""
        return self.start + (self.chunks - 1) * self.step + self.length

    def of(self, x: Tensor, base: int, heads: int, blank: float = 0.0) -> Tensor:
        """x [B, G, T, D], its first position at `base` -> [B heads, chunks, length, D]; `blank` where x has nothing."""
        args = (self.start - base, self.chunks, self.step, self.length, blank)
        runs: Tensor = _Runs.apply(x, *args)  # type: ignore[no-untyped-call]
        runs = runs[:, :, None].expand(-1, -1, heads // x.shape[1], -1, -1, -1)
        return runs.reshape(x.shape[0] * heads, self.chunks, self.length, -1)


def _stretch(pieces: tuple[Tensor, ...], low: int, high: int, size: int) -> Tensor:
    """Places low ... high - 1 of a sequence that was split into pieces of `size`."""
    if low == high:
        return pieces[0][:, :, :0]
    wanted = range(low // size, -(-high // size))
    cut = [pieces[n][:, :, max(0, low - n * size) : high - n * size] for n in wanted]
    return cut[0] if len(cut) == 1 else torch.cat(cut, 2)


def _chunks(call: Call, extent: Window, runs: _Layout, key: Tensor, value: Tensor, base: int, band: Tensor) -> Tensor:
    """One segment of queries over its keys, the first of which is at position `base`. [B, H, Tq, Dv]."""
    (B, H, Tq, D), (G, Tk), Dv = call.query.shape, call.key.shape[1:3], call.value.shape[-1]
    short = runs.chunks * runs.step - Tq
    query = pad(call.query, (0, 0, 0, short)) if short else call.query
    query = query.reshape(B * H, runs.chunks, runs.step, D)
    key, value = runs.of(key, base, H), runs.of(value, base, H)
    if g := min(extent.global_tokens, Tk):
        shared = [x[:, :, None, :g].repeat_interleave(H // G, 1) for x in (call.key, call.value)]
        shared = [x.expand(-1, -1, runs.chunks, -1, -1).reshape(B * H, runs.chunks, g, -1) for x in shared]
        key, value = torch.cat([shared[0], key], 2), torch.cat([shared[1], value], 2)
    width = max(D, Dv)
    query, key, value = (x if x.shape[-1] == width else pad(x, (0, width - x.shape[-1])) for x in (query, key, value))
    output = scaled_dot_product_attention(query, key, value, attn_mask=band, scale=call.scale)
    return output[..., :Dv].reshape(B, H, runs.chunks * runs.step, Dv)[:, :, :Tq]


def _band(call: Call, extent: Window, runs: _Layout, base: int) -> Tensor:
    """What is added to the scores of a segment, [1 or B H, 1 or chunks, C, global tokens + run]: -inf forbids."""
    (B, H), Tk, device = call.query.shape[:2], call.key.shape[2], call.key.device
    g, ahead = extent.global_tokens, 0 if extent.causal else extent.radius
    # Which pairs may meet: near enough, and a key that exists and is not a global token, which stand apart.
    within = torch.arange(runs.length, device=device)
    distance = torch.arange(runs.step, device=device)[:, None] + extent.radius - within  # i - j, in any chunk
    allowed = ((distance <= extent.radius) & (distance >= -ahead))[None, None]  # [1, 1, C, run]
    if runs.start < g or runs.stop > Tk:
        positions = runs.start + torch.arange(runs.chunks, device=device)[:, None] * runs.step + within
        allowed = allowed & ((positions >= g) & (positions < Tk))[None, :, None]  # [1, chunks, C, run]
    # Queries here stand behind the global tokens (others are apart), so they see all of them, causal or not.
    allowed = torch.cat(
        [allowed.new_ones(1, 1, runs.step, min(g, Tk)).expand(-1, allowed.shape[1], -1, -1), allowed], -1
    )
    if call.mask is None:
        return _added(allowed, call.query.dtype)
    mask = call.mask if call.mask.dtype != torch.bool else _added(call.mask, call.query.dtype)
    along = mask.expand(B, -1, 1, -1).transpose(2, 3)  # [B, H or 1, Tk, 1]
    here = runs.of(along[:, :, base : max(base, min(Tk, runs.stop))], base, H, -torch.inf)
    first = along[:, :, None, :g].expand(-1, H, runs.chunks, -1, -1).reshape(B * H, runs.chunks, -1, 1)
    return torch.cat([first, here], 2).transpose(2, 3).masked_fill(~allowed, -torch.inf)


def _added(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where allowed, -inf elsewhere."""
    return torch.zeros_like(allowed, dtype=dtype).masked_fill_(~allowed, -torch.inf)


class _Runs(torch.autograd.Function):
    """Overlapping runs of a sequence; backward adds the overlaps up, a few large additions instead of a scatter."""

    @staticmethod
    def forward(ctx, x, start, chunks, step, length, blank):  # type: ignore[no-untyped-def]
        ctx.shape, ctx.start, ctx.step = x.shape, start, step
        full = x.new_full((*x.shape[:2], (chunks - 1) * step + length, x.shape[3]), blank)
        low, high = max(0, start), min(x.shape[2], start + full.shape[2])
        if high > low:
            full[:, :, low - start : high - start] = x[:, :, low:high]
        return full.unfold(2, length, step).transpose(-1, -2)  # a view: the overlaps are stored once

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        B, G, chunks, length, D = grad.shape
        step, start, T = ctx.step, ctx.start, ctx.shape[2]
        pieces = -(-length // step)  # a run spans so many steps
        total = grad.new_zeros(B, G, (chunks - 1 + pieces) * step, D)
        for piece in range(pieces):
            part = grad[:, :, :, piece * step : (piece + 1) * step]
            view = total[:, :, piece * step : (piece + chunks) * step].unflatten(2, (chunks, step))
            view[:, :, :, : part.shape[3]] += part
        low, high = min(T, max(0, start)), max(0, min(T, start + total.shape[2]))
        total = total[:, :, low - start : max(low, high) - start]
        return pad(total, (0, 0, low, T - max(low, high))), None, None, None, None, None
