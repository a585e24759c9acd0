"""Windows in O(T x radius): chunks of queries with look-around over their keys, many chunks in one fused call.

Queries are cut into chunks of C. Chunk n may attend to the C + 2 radius keys around it (C + radius if causal), so
keys and values are laid out as overlapping blocks, and what remains is ordinary attention with a small band mask.
Global tokens precede every block; their own rows attend everywhere and are computed separately. Long sequences are
computed segment by segment, so that no tensor grows so large that every step pays for newly mapped memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from regard.attention.call import Call, KernelOutput
from regard.attention.extents.causal import Causal
from regard.attention.extents.global_ import Global
from regard.attention.extents.window import Window
from regard.attention.kernels import sdpa

MIN_CHUNK = 32
MAX_CHUNK = 256
MAX_MASK_BYTES = 64 << 20  # bytes
SEGMENT_BYTES = 4 << 20  # of keys laid out as blocks


def unsupported_reason(call: Call) -> str | None:
    """Why this kernel cannot serve, or None."""
    if call.extent.form != "band":
        return f"window serves windows and local-m, not a {call.extent.name} extent"
    if reason := sdpa.unsupported_reason(call):
        return reason.replace("sdpa", "window, which is built on sdpa,", 1)
    if call.position is not None and call.position.adds_bias:
        return f"window does not support the bias of {call.position.name} positions"
    if call.mask is not None and call.mask.shape[-2] != 1:
        return "window takes masks over keys only ([B, 1, 1, Tk]), not one row a query"
    if call.key_index is not None:
        return "window needs keys in a row"
    return None


def chunk_size(extent: Window) -> int:
    """Short chunks waste few keys, long ones few kernel starts; the radius is best, but the band mask is C wide."""
    return min(MAX_CHUNK, max(MIN_CHUNK, extent.radius))


def block_length(extent: Window) -> int:
    """How many keys a chunk may attend to, global tokens included."""
    return chunk_size(extent) + extent.radius * (1 if extent.causal else 2) + extent.global_tokens


def inefficient_reason(call: Call) -> str | None:
    """Why another kernel would be better, or None."""
    assert isinstance(call.extent, Window)
    length = block_length(call.extent)
    if 2 * length > call.key.shape[2] or call.query.shape[2] < 2:
        return "there is too little of the sequence outside the window to be worth splitting it into chunks"
    B, H, Tq, _ = call.query.shape
    if call.mask is not None and B * H * Tq * length * call.query.element_size() > MAX_MASK_BYTES:
        return f"it would store more than {MAX_MASK_BYTES >> 20} MiB of masks, one for each head and chunk"
    return None


def run(call: Call) -> KernelOutput:
    """Serve one call."""
    extent = call.extent
    assert isinstance(extent, Window)
    global_rows = max(0, min(extent.global_tokens - call.offset, call.query.shape[2]))
    parts = []
    if global_rows:
        first = replace(call.rows(0, global_rows), extent=Causal() if extent.causal else Global())
        parts.append(sdpa.run(first).output)
        call = call.rows(global_rows, call.query.shape[2])
    if call.query.shape[2] or not parts:
        parts += _segments(call, extent)
    return KernelOutput(parts[0] if len(parts) == 1 else torch.cat(parts, 2))


def _segments(call: Call, extent: Window) -> Iterator[Tensor]:
    """The outputs of one segment of queries after another."""
    (B, H, Tq, D), Tk, Dv = call.query.shape, call.key.shape[2], call.value.shape[-1]
    if not Tq:
        yield call.query.new_zeros(B, H, 0, Dv)
        return
    C, ahead = chunk_size(extent), 0 if extent.causal else extent.radius
    masks_per_chunk = 1 if call.mask is None else B * H  # how many band masks a chunk has
    bytes_a_chunk = block_length(extent) * (B * H * max(D, Dv) + masks_per_chunk * C) * call.query.element_size()
    size = max(1, SEGMENT_BYTES // max(1, bytes_a_chunk)) * C
    # Split, not sliced: the gradients of the pieces are then concatenated at once.
    queries = torch.split(call.query, size, 2)
    keys, values = torch.split(call.key, size, 2), torch.split(call.value, size, 2)
    shared_band: Tensor | None = None  # away from the ends one band serves every chunk
    for number, query in enumerate(queries):
        offset = call.offset + number * size
        low = min(Tk, max(0, offset - extent.radius))
        high = max(low, min(Tk, offset + query.shape[2] + ahead))
        segment = replace(call, query=query, offset=offset)
        layout = _BlockLayout(offset - extent.radius, -(-query.shape[2] // C), C, extent.radius + C + ahead)
        key, value = (_key_slice(pieces, low, high, size) for pieces in (keys, values))
        if call.mask is None and layout.start >= extent.global_tokens and layout.stop <= Tk:
            shared_band = _band(segment, extent, layout, low) if shared_band is None else shared_band
            band = shared_band
        else:
            band = _band(segment, extent, layout, low)
        yield _chunks(segment, extent, layout, key, value, low, band)


@dataclass(frozen=True)
class _BlockLayout:
    """Overlapping blocks of keys, one for each chunk of queries: block n begins at start + n step, `length` long."""

    start: int
    chunks: int
    step: int
    length: int

    @property
    def stop(self) -> int:
        """The position after the last block."""
        return self.start + (self.chunks - 1) * self.step + self.length

    def unfold_keys(self, x: Tensor, base: int, heads: int, fill: float = 0.0) -> Tensor:
        """x [B, G, T, D], its first position at `base` -> [B heads, chunks, length, D]; `fill` outside x."""
        args = (self.start - base, self.chunks, self.step, self.length, fill)
        blocks: Tensor = _OverlappingBlocks.apply(x, *args)  # type: ignore[no-untyped-call]
        blocks = blocks[:, :, None].expand(-1, -1, heads // x.shape[1], -1, -1, -1)
        return blocks.reshape(x.shape[0] * heads, self.chunks, self.length, -1)


def _key_slice(pieces: tuple[Tensor, ...], low: int, high: int, size: int) -> Tensor:
    """Positions low ... high - 1 of a sequence that was split into pieces of `size`."""
    if low == high:
        return pieces[0][:, :, :0]
    indices = range(low // size, -(-high // size))
    slices = [pieces[n][:, :, max(0, low - n * size) : high - n * size] for n in indices]
    return slices[0] if len(slices) == 1 else torch.cat(slices, 2)


def _chunks(
    call: Call, extent: Window, layout: _BlockLayout, key: Tensor, value: Tensor, base: int, band: Tensor
) -> Tensor:
    """One segment of queries over its keys, the first of which is at position `base`. [B, H, Tq, Dv]."""
    (B, H, Tq, D), (G, Tk), Dv = call.query.shape, call.key.shape[1:3], call.value.shape[-1]
    padding = layout.chunks * layout.step - Tq
    query = pad(call.query, (0, 0, 0, padding)) if padding else call.query
    query = query.reshape(B * H, layout.chunks, layout.step, D)
    key, value = layout.unfold_keys(key, base, H), layout.unfold_keys(value, base, H)
    if g := min(extent.global_tokens, Tk):
        shared = [x[:, :, None, :g].repeat_interleave(H // G, 1) for x in (call.key, call.value)]
        shared = [x.expand(-1, -1, layout.chunks, -1, -1).reshape(B * H, layout.chunks, g, -1) for x in shared]
        key, value = torch.cat([shared[0], key], 2), torch.cat([shared[1], value], 2)
    width = max(D, Dv)
    query, key, value = (x if x.shape[-1] == width else pad(x, (0, width - x.shape[-1])) for x in (query, key, value))
    output = scaled_dot_product_attention(query, key, value, attn_mask=band, scale=call.scale)
    return output[..., :Dv].reshape(B, H, layout.chunks * layout.step, Dv)[:, :, :Tq]


def _band(call: Call, extent: Window, layout: _BlockLayout, base: int) -> Tensor:
    """What is added to the scores of a segment, [1 or B H, 1 or chunks, C, global tokens + block]: -inf masks."""
    (B, H), Tk, device = call.query.shape[:2], call.key.shape[2], call.key.device
    g, ahead = extent.global_tokens, 0 if extent.causal else extent.radius
    # Allowed pairs: within the radius, and a key that exists and is not a global token (these come first).
    within = torch.arange(layout.length, device=device)
    distance = torch.arange(layout.step, device=device)[:, None] + extent.radius - within  # i - j, in any chunk
    allowed = ((distance <= extent.radius) & (distance >= -ahead))[None, None]  # [1, 1, C, run]
    if layout.start < g or layout.stop > Tk:
        positions = layout.start + torch.arange(layout.chunks, device=device)[:, None] * layout.step + within
        allowed = allowed & ((positions >= g) & (positions < Tk))[None, :, None]  # [1, chunks, C, run]
    # Queries here come after the global tokens, so they attend to all of them, causal or not.
    allowed = torch.cat(
        [allowed.new_ones(1, 1, layout.step, min(g, Tk)).expand(-1, allowed.shape[1], -1, -1), allowed], -1
    )
    if call.mask is None:
        return _to_additive_mask(allowed, call.query.dtype)
    mask = call.mask if call.mask.dtype != torch.bool else _to_additive_mask(call.mask, call.query.dtype)
    key_mask = mask.expand(B, -1, 1, -1).transpose(2, 3)  # [B, H or 1, Tk, 1]
    block_mask = layout.unfold_keys(key_mask[:, :, base : max(base, min(Tk, layout.stop))], base, H, -torch.inf)
    first = key_mask[:, :, None, :g].expand(-1, H, layout.chunks, -1, -1).reshape(B * H, layout.chunks, -1, 1)
    return torch.cat([first, block_mask], 2).transpose(2, 3).masked_fill(~allowed, -torch.inf)


def _to_additive_mask(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where allowed, -inf elsewhere."""
    return torch.zeros_like(allowed, dtype=dtype).masked_fill_(~allowed, -torch.inf)


class _OverlappingBlocks(torch.autograd.Function):
    """Overlapping blocks of a sequence; backward sums the overlaps with a few large additions instead of a scatter."""

    @staticmethod
    def forward(ctx, x, start, chunks, step, length, fill):  # type: ignore[no-untyped-def]
        ctx.shape, ctx.start, ctx.step = x.shape, start, step
        full = x.new_full((*x.shape[:2], (chunks - 1) * step + length, x.shape[3]), fill)
        low, high = max(0, start), min(x.shape[2], start + full.shape[2])
        if high > low:
            full[:, :, low - start : high - start] = x[:, :, low:high]
        return full.unfold(2, length, step).transpose(-1, -2)  # a view: the overlaps are stored once

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        B, G, chunks, length, D = grad.shape
        step, start, T = ctx.step, ctx.start, ctx.shape[2]
        pieces = -(-length // step)  # steps that a block covers
        total = grad.new_zeros(B, G, (chunks - 1 + pieces) * step, D)
        for piece in range(pieces):
            part = grad[:, :, :, piece * step : (piece + 1) * step]
            view = total[:, :, piece * step : (piece + chunks) * step].unflatten(2, (chunks, step))
            view[:, :, :, : part.shape[3]] += part
        low, high = min(T, max(0, start)), max(0, min(T, start + total.shape[2]))
        total = total[:, :, low - start : max(low, high) - start]
        return pad(total, (0, 0, low, T - max(low, high))), None, None, None, None, None
