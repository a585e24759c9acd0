"""Attention drawn over its source: an image for each word; a spectrogram or a series above rows of weights."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.media.base import MediaKind
from regard.errors import RegardError
from regard.interpret.captured_attention import CapturedAttention, Kind, SourceMedia, Weights
from regard.views.heat_map import SUFFIXES, font_families, missing_characters
from regard.views.terminal import printable, shade_block, text_width, truncate

IMAGES_PER_ROW = 6
MAX_TERMINAL_COLUMNS = 72  # of a recording
MAX_TERMINAL_ROWS = 24  # of a series
MAX_ROW_LABELS = 24  # of a series, in a plot
MAX_SERIES_HEIGHT = 4.0  # inches of the rows of weights
GRAY = 0.45
SERIES_COLORS = ("#33475b", "#c2410c", "#3f7d4e", "#7a4fa3", "#8a6d1a", "#a3335c")


@dataclass(frozen=True)
class Overlay:
    """A drawing over a source: a title, a capture, and weights [rows, positions of the source] of one kind."""

    title: str
    captured: CapturedAttention
    weights: Weights
    kind: Kind = "cross"

    @property
    def media(self) -> SourceMedia:
        """The source."""
        assert self.captured.source_media is not None
        return self.captured.source_media

    @property
    def labels(self) -> list[str]:
        """Of the rows."""
        return [printable(label) for label in self.captured.rows(self.kind).labels]


def write_overlay(overlays: Sequence[Overlay], path: Path) -> list[str]:
    """Draw overlays into one file; returns the characters that no installed font has."""
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
    heights = [_height(overlay) for overlay in overlays]
    with matplotlib.rc_context(options):
        figure = Figure(figsize=(9, sum(heights)), dpi=130, layout="constrained")
        subfigures = figure.subfigures(len(overlays), 1, squeeze=False, height_ratios=heights)[:, 0]
        for subfigure, overlay in zip(subfigures, overlays, strict=True):
            subfigure.suptitle(printable(overlay.title), fontsize=9, parse_math=False)
            DRAW[overlay.media.kind](subfigure, overlay)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph", UserWarning)  # missing characters are returned
            figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
    texts = "".join(text for overlay in overlays for text in (printable(overlay.title), *overlay.labels))
    return [] if path.suffix.lower() == ".svg" else missing_characters(texts)


def _height(overlay: Overlay) -> float:
    if overlay.media.is_image:
        return 0.3 + 1.7 * math.ceil((len(overlay.weights) + 1) / IMAGES_PER_ROW)
    if overlay.media.kind == "series":
        return 2.2 + min(MAX_SERIES_HEIGHT, 0.24 * len(overlay.weights))
    return 2.0 + 0.24 * len(overlay.weights)


def _draw_images(subfigure: Any, overlay: Overlay) -> None:
    """The image, and again for each word, gray where weights are small, so that dark and light are visible alike."""
    weights = overlay.weights
    pixels = np.moveaxis(overlay.media.values, 0, -1)
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
            label = truncate(overlay.labels[number - 1], 18)
            axes.set_title(label, fontsize=9, parse_math=False)


def _draw_spectrogram(subfigure: Any, overlay: Overlay) -> None:
    """The spectrogram, and below it a row of weights for each word over the same time."""
    weights = overlay.weights
    if not len(weights):
        weights = np.zeros((1, weights.shape[1]), np.float32)  # the output is empty: an empty row
    seconds = overlay.media.seconds
    top, bottom = subfigure.subplots(2, 1, sharex=True, height_ratios=[1.5, 0.24 * len(weights) + 0.1])
    top.imshow(overlay.media.values.T, origin="lower", aspect="auto", cmap="Greys", extent=(0, seconds, 0, 1))
    top.set_yticks([])
    top.set_ylabel("low to high", fontsize=8)
    bottom.imshow(weights, aspect="auto", cmap="Blues", vmin=0, extent=(0, seconds, len(weights), 0))
    labels = [truncate(label, 24) for label in overlay.labels] or [""]
    bottom.set_yticks([row + 0.5 for row in range(len(labels))], labels, fontsize=8, parse_math=False)
    bottom.set_xlabel("seconds", fontsize=8)
    for axes in (top, bottom):
        axes.tick_params(length=0, labelsize=8)


def _draw_series(subfigure: Any, overlay: Overlay) -> None:
    """The lines of all columns, shaded by the mean weight of each step, and below them a row of weights for each query;
    where positions are columns, a line for each of them, the darker the larger its mean weight."""
    weights, values = overlay.weights, overlay.media.values
    labels = [truncate(label, 24) for label in overlay.labels]
    rows = min(MAX_SERIES_HEIGHT, 0.24 * len(weights))
    by_column = overlay.captured.source.unit == "columns"
    top, bottom = subfigure.subplots(2, 1, height_ratios=[1.7, rows + 0.1])
    mean = weights.mean(0) / max(1e-9, float(weights.mean(0).max()))
    for column, line in enumerate(values.T):
        opacity = 0.15 + 0.85 * float(mean[column]) if by_column else 0.8
        top.plot(np.arange(-len(values), 0) + 0.5, line, lw=1, color=SERIES_COLORS[column % 6], alpha=opacity)
    edges = (-len(values), 0)
    if not by_column:
        shade, low = (*edges, *top.get_ylim()), float(mean.min())
        top.imshow(mean[None], aspect="auto", cmap="Blues", vmin=low, vmax=2 - low, extent=shade, zorder=0)
    top.set(xlim=edges, yticks=[])
    extent = (0, weights.shape[1], len(weights), 0) if by_column else (*edges, len(weights), 0)
    bottom.imshow(weights, aspect="auto", cmap="Blues", vmin=0, extent=extent, interpolation="nearest")
    every = max(1, math.ceil(len(labels) / MAX_ROW_LABELS))
    ticks = range(0, len(labels), every)
    bottom.set_yticks([row + 0.5 for row in ticks], [labels[row] for row in ticks], fontsize=7, parse_math=False)
    if by_column:
        names = [truncate(printable(label), 14) for label in overlay.captured.source.labels]
        bottom.set_xticks([at + 0.5 for at in range(len(names))], names, fontsize=7, rotation=30, parse_math=False)
    top.set_xlabel("steps before the forecast", fontsize=8)
    for axes in (top, bottom):
        axes.tick_params(length=0, labelsize=7)


DRAW: dict[MediaKind, Callable[[Any, Overlay], None]] = {
    "image": _draw_images,
    "spectrogram": _draw_spectrogram,
    "series": _draw_series,
}


def render_overlay(overlay: Overlay, columns: int = 100) -> str:
    """Lines of text: for an image a small grid for each word, side by side; else a row of weights for each query."""
    if overlay.media.is_image:
        return _render_grids(overlay, columns)
    labels, weights = _grouped_rows(overlay) if overlay.media.kind == "series" else (overlay.labels, overlay.weights)
    count = min(MAX_TERMINAL_COLUMNS, weights.shape[1], max(10, columns - 20))
    edges = np.linspace(0, weights.shape[1], count + 1).astype(int)
    pooled = np.stack([weights[:, first:end].sum(1) for first, end in pairwise(edges)], 1)
    largest = pooled.max(1, keepdims=True)
    # Rows of attributions may sum to more than 1; the weights of a series are spread over many positions.
    scaled = pooled / (np.maximum(1e-9, largest) if overlay.media.kind == "series" else np.maximum(1, largest))
    lines = [
        f"{truncate(label, 16):>16}  " + "".join(shade_block(float(weight)) for weight in row)
        for label, row in zip(labels, scaled, strict=True)
    ]
    return "\n".join([*lines, " " * 18 + _scale_line(overlay, count)])


def _grouped_rows(overlay: Overlay) -> tuple[list[str], Weights]:
    """At most MAX_TERMINAL_ROWS rows: the means of neighboring ones."""
    labels, weights = overlay.labels, overlay.weights
    if len(labels) <= MAX_TERMINAL_ROWS:
        return labels, weights
    groups = np.array_split(np.arange(len(labels)), MAX_TERMINAL_ROWS)
    names = [f"{labels[group[0]]} to {labels[group[-1]]}" for group in groups]
    return names, np.stack([weights[group].mean(0) for group in groups])


def _scale_line(overlay: Overlay, count: int) -> str:
    """What is at the ends of the rows of weights."""
    if overlay.media.kind == "spectrogram":
        return "0" + f"{overlay.media.seconds:.1f} s".rjust(count - 1)
    labels = [truncate(printable(label), 16) for label in overlay.captured.source.labels]
    if overlay.captured.source.unit == "columns":
        return " ".join(labels)
    return labels[0] + labels[-1].rjust(max(1, count - len(labels[0])))


def _render_grids(overlay: Overlay, columns: int) -> str:
    labels, weights = overlay.labels, overlay.weights
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
