"""Alignments as a picture: what each output piece attended to, one panel an example."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.seeing.terminal import visible


@dataclass(frozen=True)
class Alignment:
    """Pieces of source and target, and the weights between them, [target][source]."""

    source: Sequence[str]
    target: Sequence[str]
    weights: Sequence[Sequence[float]]


def _label(piece: str) -> str:
    """A piece as matplotlib must be told it: a dollar is a dollar, not mathematics."""
    return visible(piece).replace("$", r"\$")


def write_picture(alignments: Sequence[Alignment], path: Path) -> None:
    """All of them, one below the other, into a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    widest = max(len(each.source) for each in alignments)
    heights = [len(each.target) + 2.5 for each in alignments]
    figure = Figure(figsize=(max(5.0, 0.24 * widest + 1), 0.24 * sum(heights)), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(alignments), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, each in zip(panels, alignments, strict=True):
        axes.imshow(each.weights, cmap="Blues", vmin=0, vmax=1, aspect="equal")
        axes.set_xticks(range(len(each.source)), [_label(piece) for piece in each.source], fontsize=8)
        axes.set_yticks(range(len(each.target)), [_label(piece) for piece in each.target], fontsize=8)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_color("#c8ccd2")
    figure.savefig(path)
