"""Windows in O(T x radius): chunks of queries with look-around over their keys, many chunks in one fused call.

Queries are cut into chunks of C. Chunk n may look at the C + 2 radius keys around it (C + radius if causal), so keys
and values are laid out as overlapping runs, and what remains is ordinary attention with a small band mask. Global
tokens are put before every run; their own rows look everywhere and are computed apart. Long sequences go segment by
segment, so that no tensor grows so large that every step pays for fresh pages of memory.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from regard.attention.call import Call, Outcome
from regard.attention.extents import Causal, Global, Window
from regard.attention.kernels import sdpa

SMALLEST_CHUNK = 32
SEGMENT_BYTES = 4 << 20  # of keys laid out as runs


def refuses(call: Call) -> str | None:
    """Why this kernel cannot serve, or None."""
    if not isinstance(call.extent, Window):
        return f"window serves windows and local-m, not a {call.extent.name} extent"
    if reason := sdpa.refuses(call):
        return reason.replace("sdpa", "window, which is built on sdpa,", 1)
    if call.position is not None and call.position.name != "rotary":
        return f"window has no place for the bias of {call.position.name} positions"
    if call.mask is not None and call.mask.shape[-2] != 1:
        return "window takes masks over keys only ([B, 1, 1, Tk]), not one row a query"
    if call.key_places is not None:
        return "window needs keys in a row"
    return None


def chunk_size(extent: Window) -> int:
    """Short chunks waste few keys, long ones few starts; about the radius is best."""
    return max(SMALLEST_CHUNK, int(extent.radius))


def run_length(extent: Window) -> int:
    """How many keys a chunk may look at, global tokens included."""
    return chunk_size(extent) + int(extent.radius) * (1 if extent.causal else 2) + extent.global_tokens


def pays(call: Call) -> bool:
    """Whether the pairs computed are fewer than half of all."""
    assert isinstance(call.extent, Window)
    return 2 * run_length(call.extent) <= call.key.shape[2] and call.query.shape[2] > 1


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
    (B, H, _, D), Tk, Dv = call.query.shape, call.key.shape[2], call.value.shape[-1]
    C, radius, ahead = chunk_size(extent), int(extent.radius), 0 if extent.causal else int(extent.radius)
    bytes_a_chunk = B * H * run_length(extent) * max(D, Dv) * call.query.element_size()
    size = max(1, SEGMENT_BYTES // max(1, bytes_a_chunk)) * C
    # Split, not sliced: the gradients of the pieces are then put together in one go.
    if not call.query.shape[2]:
        yield call.query.new_zeros(B, H, 0, Dv)
        return
    queries = torch.split(call.query, size, 2)
    keys, values = torch.split(call.key, size, 2), torch.split(call.value, size, 2)
    for number, query in enumerate(queries):
        offset = call.offset + number * size
        low = min(Tk, max(0, offset - radius))
        high = max(low, min(Tk, offset + query.shape[2] + ahead))
        key, value = (_stretch(pieces, low, high, size) for pieces in (keys, values))
        yield _chunks(replace(call, query=query, offset=offset), extent, key, value, low)


def _stretch(pieces: tuple[Tensor, ...], low: int, high: int, size: int) -> Tensor:
    """Places low ... high - 1 of a sequence that was split into pieces of `size`."""
    if low == high:
        return pieces[0][:, :, :0]
    wanted = range(low // size, -(-high // size))
    cut = [pieces[n][:, :, max(0, low - n * size) : high - n * size] for n in wanted]
    return cut[0] if len(cut) == 1 else torch.cat(cut, 2)


def _chunks(call: Call, extent: Window, key: Tensor, value: Tensor, base: int) -> Tensor:
    """One segment of queries over its keys, the first of which is at place `base`. [B, H, Tq, Dv]."""
    (B, H, Tq, D), (G, Tk), Dv = call.query.shape, call.key.shape[1:3], call.value.shape[-1]
    C, radius, g = chunk_size(extent), int(extent.radius), extent.global_tokens
    ahead = 0 if extent.causal else radius
    chunks = -(-Tq // C)
    run = radius + C + ahead
    device = key.device
    start = call.offset - radius  # place of the first key of the first run
    places = start + torch.arange(chunks, device=device)[:, None] * C + torch.arange(run, device=device)

    def lay_out(x: Tensor, blank: float = 0.0) -> Tensor:  # [B, G or 1, T, *] -> [B H, chunks, run, *]
        runs = _runs(x, start - base, chunks, C, run, blank)[:, :, None]
        return runs.expand(-1, -1, H // x.shape[1], -1, -1, -1).reshape(B * H, chunks, run, -1)

    short = chunks * C - Tq
    query = (pad(call.query, (0, 0, 0, short)) if short else call.query).reshape(B * H, chunks, C, D)
    key, value = lay_out(key), lay_out(value)
    # Which pairs may meet: near enough, and a key that exists and is not a global token, which stand apart.
    distance = torch.arange(C, device=device)[:, None] + radius - torch.arange(run, device=device)  # i - j, any chunk
    near = (distance <= radius) & (distance >= -ahead)
    allowed = (near & ((places >= g) & (places < Tk) & (places >= 0))[:, None])[None]  # [1, chunks, C, run]
    if call.mask is not None:
        along = call.mask[..., base : base + _length(start, base, chunks, C, run, Tk)]
        along = along.expand(B, -1, 1, -1).transpose(2, 3)  # [B, H or 1, T, 1]
        if along.dtype == torch.bool:
            allowed = allowed & lay_out(along, False).transpose(2, 3)
        else:
            allowed = lay_out(along, -torch.inf).transpose(2, 3).masked_fill(~allowed, -torch.inf)
    if g:
        shared = [x[:, :, None, :g].repeat_interleave(H // G, 1) for x in (call.key, call.value)]
        shared = [x.expand(-1, -1, chunks, -1, -1).reshape(B * H, chunks, min(g, Tk), -1) for x in shared]
        key, value = torch.cat([shared[0], key], 2), torch.cat([shared[1], value], 2)
        query_at = call.offset + torch.arange(chunks * C, device=device).view(chunks, C)
        seen = _global_mask(call, query_at, min(g, Tk), extent.causal)
        if allowed.dtype != torch.bool and seen.dtype == torch.bool:
            seen = torch.zeros_like(seen, dtype=allowed.dtype).masked_fill_(~seen, -torch.inf)
        rows = max(len(allowed), len(seen))
        allowed = torch.cat([seen.expand(rows, -1, -1, -1), allowed.expand(rows, -1, -1, -1)], -1)
    if allowed.dtype == torch.bool:
        allowed = torch.zeros_like(allowed, dtype=query.dtype).masked_fill_(~allowed, -torch.inf)
    width = max(D, Dv)
    query, key, value = (x if x.shape[-1] == width else pad(x, (0, width - x.shape[-1])) for x in (query, key, value))
    output = scaled_dot_product_attention(query, key, value, attn_mask=allowed, scale=call.scale)
    return output[..., :Dv].reshape(B, H, chunks * C, Dv)[:, :, :Tq]


def _length(start: int, base: int, chunks: int, step: int, run: int, Tk: int) -> int:
    """How many keys from `base` on the runs reach."""
    return max(0, min(Tk, start + (chunks - 1) * step + run) - base)


def _global_mask(call: Call, query_at: Tensor, g: int, causal: bool) -> Tensor:
    """Which of the g global tokens each query sees, [1 or B H, chunks, C, g]; float if the mask is."""
    (B, H), (chunks, C) = call.query.shape[:2], query_at.shape
    seen = torch.ones(chunks, C, g, dtype=torch.bool, device=query_at.device)
    if causal:
        seen = torch.arange(g, device=query_at.device) <= query_at[..., None]
    if call.mask is None:
        return seen[None]
    along = call.mask[..., :g].expand(B, H, 1, g).reshape(B * H, 1, 1, g)
    if along.dtype == torch.bool:
        return seen & along
    return along.masked_fill(~seen, -torch.inf)


def _runs(x: Tensor, start: int, chunks: int, step: int, length: int, blank: float = 0.0) -> Tensor:
    """x [B, G, T, D] -> overlapping runs [B, G, chunks, length, D]; run n begins at place start + n step."""
    runs: Tensor = _Runs.apply(  # type: ignore[no-untyped-call]
        x, start, chunks, step, length, blank
    )
    return runs


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
