"""Attention heat maps as an image: the weights of each output token, one panel per example."""

import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.views.terminal import JOINERS, printable, text_width, truncate

SUFFIXES = (".png", ".svg", ".pdf")
# Inches.
CELL_SIZE = 0.24
CHARACTER_WIDTH, LINE_HEIGHT = 0.065, 0.15  # of a title
PADDING = 0.08
MAX_LABEL_WIDTH = 24  # columns; longer labels are truncated
# Fonts for characters that DejaVu Sans, which comes with matplotlib, lacks; those that are installed are used.
FONT_FAMILIES = (
    *(
        "Noto Sans CJK SC",
        "Noto Sans SC",
        "Source Han Sans SC",
        "WenQuanYi Micro Hei",
        "PingFang SC",
        "Microsoft YaHei",
    ),
    *("Noto Sans CJK JP", "Noto Sans JP", "Hiragino Sans", "Yu Gothic", "Noto Sans CJK KR", "Malgun Gothic", "SimHei"),
    *("Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai", "Noto Sans Bengali"),
    *("Noto Sans Tamil", "Noto Sans Georgian", "Noto Sans Ethiopic", "Noto Sans", "Arial Unicode MS", "Segoe UI"),
)


@dataclass(frozen=True)
class LabeledMatrix:
    """Tokens of source and target, and the weights between them, [target][source]."""

    source: Sequence[str]
    target: Sequence[str]
    weights: Sequence[Sequence[float]]
    title: str = ""


def write_heat_maps(matrices: Sequence[LabeledMatrix], path: Path, *, strip: bool = False) -> list[str]:
    """Draw matrices, one below the other, into a .png, .svg or .pdf; returns the characters that no installed font
    has, none for an .svg, which keeps its text as text.

    strip: side by side, for matrices of one pair of texts, with the target's labels at the left once. Raises
    RegardError for other suffixes.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise RegardError(f"{path}: pictures are written as {', '.join(SUFFIXES)}.")
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    column_labels = [[_label(token) for token in each.source] for each in matrices]
    vertical = any(text_width(label) > 2 for labels in column_labels for label in labels)
    header_heights = [0.11 * max(map(text_width, labels), default=0) if vertical else 0.3 for labels in column_labels]
    row_label_width = 0.11 * max((text_width(_label(token)) for each in matrices for token in each.target), default=0)
    max_columns = max(len(each.source) for each in matrices)
    width = max(4.0, CELL_SIZE * max_columns + row_label_width + 0.6)
    if strip:
        width = (CELL_SIZE * max_columns + 0.15) * len(matrices) + row_label_width + 0.4
    title_columns = int(width / CHARACTER_WIDTH) if not strip else int(CELL_SIZE * max_columns / CHARACTER_WIDTH)
    titles = [textwrap.wrap(printable(each.title), max(12, title_columns)) for each in matrices]
    heights = [
        CELL_SIZE * len(each.target) + header_height + 0.25 + LINE_HEIGHT * len(title)
        for each, header_height, title in zip(matrices, header_heights, titles, strict=True)
    ]
    options: Any = {
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "font.family": font_families(),
        "svg.hashsalt": "regard",
    }
    with matplotlib.rc_context(options):
        height = max(heights) if strip else sum(heights)
        layout = ConstrainedLayoutEngine(w_pad=PADDING, h_pad=PADDING)
        figure = Figure(figsize=(width, height), dpi=150, layout=layout)
        if strip:
            panels = figure.subplots(1, len(matrices), squeeze=False, sharey=True)[0]
        else:
            panels = figure.subplots(len(matrices), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, each, labels, title in zip(panels, matrices, column_labels, titles, strict=True):
            axes.imshow(each.weights, cmap="Blues", vmin=0, vmax=1, aspect="equal")
            rotation = {"rotation": 90, "va": "bottom"} if vertical else {}
            axes.set_xticks(range(len(labels)), labels, fontsize=8, parse_math=False, **rotation)
            row_labels = [_label(token) for token in each.target]
            axes.set_yticks(range(len(row_labels)), row_labels, fontsize=8, parse_math=False)
            axes.xaxis.tick_top()
            axes.tick_params(length=0)
            if title:
                axes.set_xlabel("\n".join(title), fontsize=8, parse_math=False)
            for spine in axes.spines.values():
                spine.set_color("#c8ccd2")
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph", UserWarning)  # missing characters are returned
            figure.savefig(path, metadata=metadata)
    texts = [text for each in matrices for text in (*each.source, *each.target, each.title)]
    return [] if path.suffix.lower() == ".svg" else missing_characters("".join(map(printable, texts)))


def _label(token: str) -> str:
    return truncate(printable(token), MAX_LABEL_WIDTH)


@cache
def font_families() -> tuple[str, ...]:
    """The families that are installed."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return ("DejaVu Sans", *(family for family in FONT_FAMILIES if family in installed))


@cache
def _available_characters() -> frozenset[int]:
    """All characters of the installed families."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    characters: set[int] = set()
    for family in font_families():
        characters |= set(get_font(findfont(FontProperties(family=[family]))).get_charmap())
    return frozenset(characters)


def missing_characters(text: str) -> list[str]:
    """The characters that no installed family has."""
    available = _available_characters()
    return sorted({each for each in text if ord(each) not in available and not each.isspace() and each not in JOINERS})
