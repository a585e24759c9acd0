"""Attention laid over what was looked at: a picture for each word, or a spectrogram with each word's frames below."""

import math
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.interpret.captured_attention import CapturedAttention, Weights
from regard.views.alignment_plot import SUFFIXES, families, undrawable
from regard.views.terminal import shade, short, visible, width

ACROSS = 6  # pictures in a row
COLUMNS = 72  # of a recording in the terminal
GREY = 0.45


def write_overlay(several: Sequence[tuple[str, CapturedAttention, Weights]], path: Path) -> list[str]:
    """Captures of pictures or recordings with a title and the weights [target, places] to show, into one picture; the
    characters that no font here can draw."""
    if path.suffix.lower() not in SUFFIXES:
        raise RegardError(f"{path}: pictures are written as {', '.join(SUFFIXES)}.")
    import matplotlib
    from matplotlib.figure import Figure

    settings: Any = {"svg.fonttype": "none", "pdf.fonttype": 42, "font.family": families(), "svg.hashsalt": "regard"}
    heights = [_height(captured) for _, captured, _ in several]
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(9, sum(heights)), dpi=130, layout="constrained")
        parts = figure.subfigures(len(several), 1, squeeze=False, height_ratios=heights)[:, 0]
        for part, (title, captured, weights) in zip(parts, several, strict=True):
            assert captured.source_media is not None
            part.suptitle(visible(title), fontsize=9, parse_math=False)
            (_cells if captured.source_media.kind == "picture" else _frames)(part, captured, weights)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph", UserWarning)  # which are told below
            figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
    texts = "".join(visible(text) for title, captured, _ in several for text in (title, *captured.target.labels))
    return [] if path.suffix.lower() == ".svg" else undrawable(texts)


def _height(captured: CapturedAttention) -> float:
    assert captured.source_media is not None
    if captured.source_media.kind == "picture":
        return 0.3 + 1.7 * math.ceil((len(captured.target) + 1) / ACROSS)
    return 2.0 + 0.24 * len(captured.target)


def _cells(part: Any, captured: CapturedAttention, weights: Weights) -> None:
    """The picture, and again for each word, grey where it does not look, so that dark and light are seen alike."""
    assert captured.source_media is not None
    pixels = np.moveaxis(captured.source_media.values, 0, -1)
    pixels = pixels if pixels.shape[2] == 3 else np.repeat(pixels, 3, 2)
    size = pixels.shape[0]
    grid = math.isqrt(weights.shape[1])
    rows = math.ceil((len(weights) + 1) / ACROSS)
    axes = part.subplots(rows, ACROSS, squeeze=False).reshape(-1)
    for place, panel in enumerate(axes):
        panel.axis("off")
        if place > len(weights):
            continue
        panel.imshow(pixels, extent=(0, size, size, 0))
        if place:
            row = weights[place - 1].reshape(grid, grid)
            veil = np.full((grid, grid, 4), GREY, np.float32)
            veil[..., 3] = 0.85 * (1 - np.sqrt(row / max(1e-9, float(row.max()))))
            panel.imshow(veil, extent=(0, size, size, 0), interpolation="bilinear")
            name = short(visible(captured.target.labels[place - 1]), 18)
            panel.set_title(name, fontsize=9, parse_math=False)


def _frames(part: Any, captured: CapturedAttention, weights: Weights) -> None:
    """The spectrogram, and below it a row for each word over the same time."""
    shown = captured.source_media
    assert shown is not None
    if not len(weights):
        weights = np.zeros((1, weights.shape[1]), np.float32)  # nothing was written: an empty row
    above, below = part.subplots(2, 1, sharex=True, height_ratios=[1.5, 0.24 * len(weights) + 0.1])
    above.imshow(shown.values.T, origin="lower", aspect="auto", cmap="Greys", extent=(0, shown.seconds, 0, 1))
    above.set_yticks([])
    above.set_ylabel("low to high", fontsize=8)
    below.imshow(weights, aspect="auto", cmap="Blues", vmin=0, extent=(0, shown.seconds, len(weights), 0))
    names = [short(visible(label), 24) for label in captured.target.labels] or [""]
    below.set_yticks([at + 0.5 for at in range(len(names))], names, fontsize=8, parse_math=False)
    below.set_xlabel("seconds", fontsize=8)
    for panel in (above, below):
        panel.tick_params(length=0, labelsize=8)


def in_terminal(captured: CapturedAttention, weights: Weights, wide: int = 100) -> str:
    """Of a picture a small grid for each word, side by side; of a recording a row for each word."""
    assert captured.source_media is not None
    names = [visible(label) for label in captured.target.labels]
    if captured.source_media.kind == "spectrogram":
        count = min(COLUMNS, weights.shape[1], max(10, wide - 20))
        edges = np.linspace(0, weights.shape[1], count + 1).astype(int)
        pooled = np.stack([weights[:, a:b].sum(1) for a, b in pairwise(edges)], 1)
        shares = pooled / np.maximum(1, pooled.max(1, keepdims=True))  # what is no share of a whole may sum to more
        lines = [
            f"{short(name, 16):>16}  " + "".join(shade(float(w)) for w in row)
            for name, row in zip(names, shares, strict=True)
        ]
        return "\n".join([*lines, " " * 18 + "0" + f"{captured.source_media.seconds:.1f} s".rjust(count - 1)])
    grid = math.isqrt(weights.shape[1])
    cell = 2 * grid + 2
    at_once = max(1, wide // cell)
    parts: list[str] = []
    for at in range(0, len(names), at_once):
        some = range(at, min(at + at_once, len(names)))
        heads = [short(names[each], cell - 1) for each in some]
        parts.append("".join(head + " " * max(0, cell - width(head)) for head in heads).rstrip())
        for line in range(grid):
            row = ""
            for each in some:
                most = max(1e-9, float(weights[each].max()))
                cells = weights[each].reshape(grid, grid)[line]
                row += "|" + "".join(2 * shade(float(weight) / most) for weight in cells) + "|"
            parts.append(row)
    return "\n".join(parts)
