"""Attention drawn over its source: an image for each word, or a spectrogram above a row of weights for each word."""

import math
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.interpret.captured_attention import CapturedAttention, Weights
from regard.views.heat_map import SUFFIXES, font_families, missing_characters
from regard.views.terminal import printable, shade_block, text_width, truncate

IMAGES_PER_ROW = 6
MAX_TERMINAL_COLUMNS = 72  # of a recording
GRAY = 0.45


def write_overlay(captures: Sequence[tuple[str, CapturedAttention, Weights]], path: Path) -> list[str]:
    """Draw captures of images or recordings, each with a title and the weights [target, source], into one file; returns
    the characters that no installed font has."""
    if path.suffix.lower() not in SUFFIXES:
        raise RegardError(f"{path}: pictures are written as {', '.join(SUFFIXES)}.")
    import matplotlib
    from matplotlib.figure import Figure

    options: Any = {
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "font.family": font_families(),
        "svg.hashsalt": "regard",
    }
    heights = [_height(captured) for _, captured, _ in captures]
    with matplotlib.rc_context(options):
        figure = Figure(figsize=(9, sum(heights)), dpi=130, layout="constrained")
        subfigures = figure.subfigures(len(captures), 1, squeeze=False, height_ratios=heights)[:, 0]
        for subfigure, (title, captured, weights) in zip(subfigures, captures, strict=True):
            assert captured.source_media is not None
            subfigure.suptitle(printable(title), fontsize=9, parse_math=False)
            draw = _draw_images if captured.source_media.is_image else _draw_spectrogram
            draw(subfigure, captured, weights)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph", UserWarning)  # missing characters are returned
            figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
    texts = "".join(printable(text) for title, captured, _ in captures for text in (title, *captured.target.labels))
    return [] if path.suffix.lower() == ".svg" else missing_characters(texts)


def _height(captured: CapturedAttention) -> float:
    assert captured.source_media is not None
    if captured.source_media.is_image:
        return 0.3 + 1.7 * math.ceil((len(captured.target) + 1) / IMAGES_PER_ROW)
    return 2.0 + 0.24 * len(captured.target)


def _draw_images(subfigure: Any, captured: CapturedAttention, weights: Weights) -> None:
    """The image, and again for each word, gray where weights are small, so that dark and light are visible alike."""
    assert captured.source_media is not None
    pixels = np.moveaxis(captured.source_media.values, 0, -1)
    pixels = pixels if pixels.shape[2] == 3 else np.repeat(pixels, 3, 2)
    size = pixels.shape[0]
    grid = math.isqrt(weights.shape[1])
    rows = math.ceil((len(weights) + 1) / IMAGES_PER_ROW)
    panels = subfigure.subplots(rows, IMAGES_PER_ROW, squeeze=False).reshape(-1)
    for number, axes in enumerate(panels):
        axes.axis("off")
        if number > len(weights):
            continue
        axes.imshow(pixels, extent=(0, size, size, 0))
        if number:
            row = weights[number - 1].reshape(grid, grid)
            fog = np.full((grid, grid, 4), GRAY, np.float32)
            fog[..., 3] = 0.85 * (1 - np.sqrt(row / max(1e-9, float(row.max()))))
            axes.imshow(fog, extent=(0, size, size, 0), interpolation="bilinear")
            label = truncate(printable(captured.target.labels[number - 1]), 18)
            axes.set_title(label, fontsize=9, parse_math=False)


def _draw_spectrogram(subfigure: Any, captured: CapturedAttention, weights: Weights) -> None:
    """The spectrogram, and below it a row of weights for each word over the same time."""
    spectrogram = captured.source_media
    assert spectrogram is not None
    if not len(weights):
        weights = np.zeros((1, weights.shape[1]), np.float32)  # the output is empty: an empty row
    top, bottom = subfigure.subplots(2, 1, sharex=True, height_ratios=[1.5, 0.24 * len(weights) + 0.1])
    top.imshow(spectrogram.values.T, origin="lower", aspect="auto", cmap="Greys", extent=(0, spectrogram.seconds, 0, 1))
    top.set_yticks([])
    top.set_ylabel("low to high", fontsize=8)
    bottom.imshow(weights, aspect="auto", cmap="Blues", vmin=0, extent=(0, spectrogram.seconds, len(weights), 0))
    labels = [truncate(printable(label), 24) for label in captured.target.labels] or [""]
    bottom.set_yticks([row + 0.5 for row in range(len(labels))], labels, fontsize=8, parse_math=False)
    bottom.set_xlabel("seconds", fontsize=8)
    for axes in (top, bottom):
        axes.tick_params(length=0, labelsize=8)


def render_overlay(captured: CapturedAttention, weights: Weights, columns: int = 100) -> str:
    """Lines of text: for an image a small grid for each word, side by side; for a recording a row for each word."""
    assert captured.source_media is not None
    labels = [printable(label) for label in captured.target.labels]
    if captured.source_media.kind == "spectrogram":
        count = min(MAX_TERMINAL_COLUMNS, weights.shape[1], max(10, columns - 20))
        edges = np.linspace(0, weights.shape[1], count + 1).astype(int)
        pooled = np.stack([weights[:, first:end].sum(1) for first, end in pairwise(edges)], 1)
        scaled = pooled / np.maximum(1, pooled.max(1, keepdims=True))  # rows of attributions may sum to more than 1
        lines = [
            f"{truncate(label, 16):>16}  " + "".join(shade_block(float(weight)) for weight in row)
            for label, row in zip(labels, scaled, strict=True)
        ]
        return "\n".join([*lines, " " * 18 + "0" + f"{captured.source_media.seconds:.1f} s".rjust(count - 1)])
    grid = math.isqrt(weights.shape[1])
    grid_width = 2 * grid + 2
    grids_per_line = max(1, columns // grid_width)
    lines = []
    for start in range(0, len(labels), grids_per_line):
        words = range(start, min(start + grids_per_line, len(labels)))
        titles = [truncate(labels[word], grid_width - 1) for word in words]
        lines.append("".join(title + " " * max(0, grid_width - text_width(title)) for title in titles).rstrip())
        for row in range(grid):
            line = ""
            for word in words:
                largest = max(1e-9, float(weights[word].max()))
                cells = weights[word].reshape(grid, grid)[row]
                line += "|" + "".join(2 * shade_block(float(weight) / largest) for weight in cells) + "|"
            lines.append(line)
    return "\n".join(lines)
