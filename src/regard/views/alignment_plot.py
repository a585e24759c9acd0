"""Alignments as a picture: what each output piece attended to, one panel an example."""

import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.views.terminal import JOINERS, short, visible, width

SUFFIXES = (".png", ".svg", ".pdf")
INCH = 0.24  # of a row or a column
LETTER, LINE = 0.065, 0.15  # inches across a letter of a title, and down a line of it
PADDING = 0.08
LONGEST = 24  # columns of a name; longer ones are cut
# Families with letters that DejaVu Sans, which comes with matplotlib, has not; those that are installed are used.
FAMILIES = (
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
class Alignment:
    """Pieces of source and target, and the weights between them, [target][source]."""

    source: Sequence[str]
    target: Sequence[str]
    weights: Sequence[Sequence[float]]
    title: str = ""


def write_picture(alignments: Sequence[Alignment], path: Path, *, strip: bool = False) -> list[str]:
    """All of them, one below the other, into a .png, .svg or .pdf; the characters that no font here can draw.

    strip: side by side; they are of one pair of texts, whose target stands at the left once.

    An .svg keeps its text as text, which the reader's own fonts draw. Raises RegardError for other kinds of files.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise RegardError(f"{path}: pictures are written as {', '.join(SUFFIXES)}.")
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    upright = any(width(_label(piece)) > 2 for each in alignments for piece in each.source)
    names = [[_label(piece) for piece in each.source] for each in alignments]
    above = [0.11 * max(map(width, some), default=0) if upright else 0.3 for some in names]
    beside = 0.11 * max((width(_label(piece)) for each in alignments for piece in each.target), default=0)
    widest = max(len(each.source) for each in alignments)
    across = max(4.0, INCH * widest + beside + 0.6)
    if strip:
        across = (INCH * widest + 0.15) * len(alignments) + beside + 0.4
    room = int(across / LETTER) if not strip else int(INCH * widest / LETTER)
    titles = [textwrap.wrap(visible(each.title), max(12, room)) for each in alignments]
    sizes = [
        INCH * len(each.target) + top + 0.25 + LINE * len(title)
        for each, top, title in zip(alignments, above, titles, strict=True)
    ]
    settings: Any = {"svg.fonttype": "none", "pdf.fonttype": 42, "font.family": families(), "svg.hashsalt": "regard"}
    with matplotlib.rc_context(settings):
        high = max(sizes) if strip else sum(sizes)
        padded = ConstrainedLayoutEngine(w_pad=PADDING, h_pad=PADDING)
        figure = Figure(figsize=(across, high), dpi=150, layout=padded)
        if strip:
            panels = figure.subplots(1, len(alignments), squeeze=False, sharey=True)[0]
        else:
            panels = figure.subplots(len(alignments), 1, squeeze=False, height_ratios=sizes)[:, 0]
        for axes, each, labels, title in zip(panels, alignments, names, titles, strict=True):
            axes.imshow(each.weights, cmap="Blues", vmin=0, vmax=1, aspect="equal")
            how = {"rotation": 90, "va": "bottom"} if upright else {}
            axes.set_xticks(range(len(labels)), labels, fontsize=8, parse_math=False, **how)
            rows = [_label(piece) for piece in each.target]
            axes.set_yticks(range(len(rows)), rows, fontsize=8, parse_math=False)
            axes.xaxis.tick_top()
            axes.tick_params(length=0)
            if title:
                axes.set_xlabel("\n".join(title), fontsize=8, parse_math=False)
            for spine in axes.spines.values():
                spine.set_color("#c8ccd2")
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph", UserWarning)  # which are told below
            figure.savefig(path, metadata=metadata)
    texts = [text for each in alignments for text in (*each.source, *each.target, each.title)]
    return [] if path.suffix.lower() == ".svg" else undrawable("".join(map(visible, texts)))


def _label(piece: str) -> str:
    return short(visible(piece), LONGEST)


@cache
def families() -> tuple[str, ...]:
    """Of fonts, those that are here."""
    from matplotlib.font_manager import fontManager

    there = {font.name for font in fontManager.ttflist}
    return ("DejaVu Sans", *(family for family in FAMILIES if family in there))


@cache
def _drawable() -> frozenset[int]:
    """Every character that the families have."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    found: set[int] = set()
    for family in families():
        found |= set(get_font(findfont(FontProperties(family=[family]))).get_charmap())
    return frozenset(found)


def undrawable(text: str) -> list[str]:
    """The characters that none of the families has."""
    known = _drawable()
    return sorted({each for each in text if ord(each) not in known and not each.isspace() and each not in JOINERS})
