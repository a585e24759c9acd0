"""Any cell of the grid in memory that grows with T, not with T squared.

Queries are taken a tile of rows at a time; a tile looks only at the blocks of keys that its extent can reach, so a
window also takes time that grows with T. For gradients each tile is computed again on the way back instead of being
stored (Chen et al. 2016, arXiv:1604.06174). Inside a tile sdpa serves where it can, else the dense stages.
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from regard.attention.call import Call, Outcome
from regard.attention.extents import Window
from regard.attention.kernels import dense, sdpa
from regard.attention.normalisers import Draw, Hard

TILE_BYTES = 8 << 20  # of one matrix of scores
SMALLEST_TILE = 32


def refuses(call: Call) -> str | None:
    """Tiles serve everything."""
    return None


def rows_in_tile(call: Call) -> int:
    """How many queries one tile holds."""
    (B, H, Tq, _), Tk = call.query.shape, call.key.shape[2]
    if isinstance(call.extent, Window):
        wanted = max(2 * SMALLEST_TILE, int(call.extent.radius))
        Tk = min(Tk, 3 * wanted + call.extent.global_tokens)
    else:
        wanted = Tq
    fit = TILE_BYTES // max(1, B * H * Tk * call.query.element_size())
    return max(1, min(Tq, wanted, max(SMALLEST_TILE, fit)))


def run(call: Call) -> Outcome:
    """Serve one call."""
    Tq, Tk = call.query.shape[2], call.key.shape[2]
    rows = rows_in_tile(call)
    if Tq == 0:
        return dense.run(call)
    block = rows if isinstance(call.extent, Window) else Tk
    block = max(1, block)
    keys, values = torch.split(call.key, block, 2), torch.split(call.value, block, 2)
    tiles = [_tile(call, start, min(start + rows, Tq), block, keys, values) for start in range(0, Tq, rows)]
    draws = [tile.draw for tile in tiles if tile.draw is not None]
    every_weight = [tile.weights for tile in tiles if tile.weights is not None]
    return Outcome(
        torch.cat([tile.output for tile in tiles], 2),
        torch.cat(every_weight, 2) if every_weight else None,
        Draw(*(torch.cat(parts, 2) for parts in zip(*draws, strict=True))) if draws else None,
    )


def _tile(
    call: Call,
    start: int,
    stop: int,
    block: int,
    keys: tuple[Tensor, ...],
    values: tuple[Tensor, ...],
) -> Outcome:
    """Queries start ... stop - 1 over the blocks of keys they can reach."""
    Tk = call.key.shape[2]
    spans = call.extent.spans(call.offset + start, call.offset + stop - 1, Tk)
    wanted = sorted({b for low, high in spans for b in range(low // block, -(-high // block))} & set(range(len(keys))))
    if not wanted:
        wanted = [0]  # nothing in reach: any block will do, all of it is forbidden
    piece = replace(call.rows(start, stop), key_places=None)
    places = None
    if len(wanted) < len(keys):
        each = [torch.arange(b * block, min((b + 1) * block, Tk), device=call.key.device) for b in wanted]
        places = torch.cat(each)
    drawn = isinstance(call.normalise, Hard) and call.normalise.training

    def compute(query: Tensor, *blocks: Tensor) -> tuple[Tensor | None, ...]:
        half = len(blocks) // 2
        key, value = (torch.cat(part, 2) if half > 1 else part[0] for part in (blocks[:half], blocks[half:]))
        mask = piece.mask
        if mask is not None and places is not None and mask.shape[-1] != 1:
            mask = mask[..., places]
        inner = replace(piece, query=query, key=key, value=value, mask=mask, key_places=places)
        outcome = dense.run(inner) if sdpa.refuses(inner) else sdpa.run(inner)
        if not drawn:
            return (outcome.output,)
        w, draw = outcome.weights, outcome.draw
        if w is not None and places is not None:
            w = w.new_zeros(*w.shape[:3], Tk).index_copy(3, places, w)
        place = None if draw is None else draw.place if places is None else places[draw.place]
        log_prob, entropy = (None, None) if draw is None else draw[1:]
        return outcome.output, w, place, log_prob, entropy

    parts = [*(keys[b] for b in wanted), *(values[b] for b in wanted)]
    if call.needs_grad:
        random = drawn or call.dropout > 0
        result = checkpoint(compute, piece.query, *parts, use_reentrant=False, preserve_rng_state=random)
    else:
        result = compute(piece.query, *parts)
    output, w, place, log_prob, entropy = (*result, None, None, None, None)[:5]
    return Outcome(output, w, None if place is None else Draw(place, log_prob, entropy))
