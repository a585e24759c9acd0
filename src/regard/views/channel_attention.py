"""Attention over channels and positions inside a convolutional network: the weights of each block."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.views.heat_map import SUFFIXES
from regard.views.terminal import shade_block

CHANNELS_PER_LINE = 64  # in the terminal


@dataclass(frozen=True)
class BlockAttention:
    """The weights of one block, from 0 to 1: of each channel [C] and, for CBAM, of each position [H, W]."""

    channels: NDArray[np.float32]
    positions: NDArray[np.float32] | None = None


def write_channel_attention(blocks: Sequence[BlockAttention], image: NDArray[np.uint8], path: Path) -> None:
    """Channels as bars, the largest weight first, and positions over the image [C, S, S]; into a .png, .svg or .pdf."""
    if path.suffix.lower() not in SUFFIXES:
        raise RegardError(f"{path}: pictures are written as {', '.join(SUFFIXES)}.")
    from matplotlib.figure import Figure

    spatial = any(block.positions is not None for block in blocks)
    figure = Figure(figsize=(9 if spatial else 7, 1.9 * len(blocks)), dpi=130, layout="constrained")
    ratios = [4, 1] if spatial else [1]
    panels = figure.subplots(len(blocks), len(ratios), squeeze=False, width_ratios=ratios)
    pixels = np.moveaxis(image, 0, -1)
    pixels = pixels if pixels.shape[2] == 3 else np.repeat(pixels, 3, 2)
    size = pixels.shape[0]
    for number, (block, row) in enumerate(zip(blocks, panels, strict=True), 1):
        ranked = np.sort(block.channels)[::-1]
        row[0].bar(range(len(ranked)), ranked, width=1.0, color="#1f5fbf")
        row[0].set(ylim=(0, 1), xlim=(-0.5, len(ranked) - 0.5), xticks=[])
        row[0].set_title(f"block {number}: {len(ranked)} channels, the strongest first", fontsize=8, loc="left")
        row[0].tick_params(labelsize=7)
        if spatial:
            row[1].axis("off")
            row[1].imshow(pixels, extent=(0, size, size, 0))
            if block.positions is not None:
                fog = np.zeros((*block.positions.shape, 4), np.float32)
                smallest, largest = float(block.positions.min()), float(block.positions.max())
                fog[..., 3] = 0.85 * (1 - (block.positions - smallest) / max(1e-9, largest - smallest))
                row[1].imshow(fog, extent=(0, size, size, 0), interpolation="bilinear")
                row[1].set_title(f"positions, {smallest:.2f} to {largest:.2f}", fontsize=8)
    figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def render_channel_attention(blocks: Sequence[BlockAttention]) -> str:
    """Lines of text: for each block its channels in their own order, and its positions as a grid."""
    lines: list[str] = []
    for number, block in enumerate(blocks, 1):
        values = block.channels
        lines.append(f"block {number}: {len(values)} channels, {values.min():.2f} to {values.max():.2f}")
        for start in range(0, len(values), CHANNELS_PER_LINE):
            channels = values[start : start + CHANNELS_PER_LINE]
            lines.append("  " + "".join(shade_block(float(value)) for value in channels))
        if block.positions is not None:
            step = max(1, math.ceil(block.positions.shape[1] / 16))
            smallest, largest = float(block.positions.min()), float(block.positions.max())
            lines.append(f"  its positions, {smallest:.2f} to {largest:.2f}:")
            for row in block.positions[::step, ::step]:
                scaled = (row - smallest) / max(1e-9, largest - smallest)
                lines.append("  |" + "".join(2 * shade_block(float(value)) for value in scaled) + "|")
    return "\n".join(lines)
