"""What bench/complexity.py found, as one picture; each line is named at its end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.complexity_table import line as formula
from bench.exponents import Curve
from bench.layers import Sizes

# Okabe and Ito's colours, which people who see fewer colours can tell apart; the markers say the same again.
COLOURS = {"self-attention": "#0072B2", "recurrent": "#D55E00", "convolutional": "#009E73", "restricted": "#B5528C"}
MARKERS = {"self-attention": "o", "recurrent": "s", "convolutional": "^", "restricted": "D"}
INK, FAINT = "#333333", "#E6E6E6"
UNITS = {"forward": 1e3, "both": 1e3, "both memory": 2**-20}
USUAL = Sizes(0, 0)
CLOSEST = 13.0  # points between two names


@dataclass(frozen=True)
class Line:
    """One line of a panel: which curve, and whose colour it has. A line without a name is drawn faint."""

    kind: str
    what: str
    axis: str = "n"
    variant: str = ""  # another row of the table, of the same kind
    name: str = ""
    style: str = "-"


@dataclass(frozen=True)
class Panel:
    title: str
    along: str
    up: str
    lines: list[Line]
    said: str = ""  # under the title


def _four(what: str, axis: str = "n") -> list[Line]:
    return [Line(kind, what, axis, name=kind) for kind in COLOURS]


def _timed(axis: str) -> list[Line]:
    whole = Line("self-attention", "both", axis, "self-attention, whole layer", "with projections", "--")
    return [*_four("both", axis), whole, *(Line(kind, "forward", axis) for kind in COLOURS)]


MILLISECONDS, FAINTLY = "milliseconds, forward and backward", "faint: forward alone; "
PANELS = [
    Panel("Time against length", "n, places", MILLISECONDS, _timed("n"), FAINTLY),
    Panel("Time against width", "d, width", MILLISECONDS, _timed("d"), FAINTLY),
    Panel(
        "Time against kernel and radius",
        "k and r, places",
        MILLISECONDS,
        [
            Line(kind, what, axis, name=kind if what == "both" else "")
            for kind, axis in (("convolutional", "k"), ("restricted", "r"))
            for what in ("both", "forward")
        ],
    ),
    Panel(
        "Memory against length",
        "n, places",
        "peak MiB, forward and backward",
        [
            *_four("both memory"),
            Line("self-attention", "both memory", "n", "self-attention, weights kept", "weights kept", "--"),
        ],
        "above inputs and weights; ",
    ),
    Panel("Sequential steps", "n, places", "operations", _four("steps"), "operations that must wait for one another"),
    Panel("Longest path", "n, places", "applications", _four("path"), f"from end to end; k = {USUAL.k}, r = {USUAL.r}"),
]


def draw(curves: list[Curve], path: Path) -> None:
    """Six panels with logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    found = {(curve.layer, curve.axis, curve.what): curve for curve in curves}
    with plt.rc_context():
        plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": "#999999"})
        plt.rcParams.update({"xtick.color": INK, "ytick.color": INK})
        figure, grid = plt.subplots(2, 3, figsize=(15, 8.4))
        figure.subplots_adjust(left=0.05, right=0.905, top=0.93, bottom=0.06, wspace=0.68, hspace=0.36)
        for frame, panel in zip(grid.flat, PANELS, strict=True):
            drawn = [(line, found[line.variant or line.kind, line.axis, line.what]) for line in panel.lines]
            ends = [_one(frame, line, curve) for line, curve in drawn]
            _dress(frame, panel, [curve for _, curve in drawn])
            _name(frame, [end for end in ends if end[2]])
        figure.savefig(path, dpi=100)
        plt.close(figure)


End = tuple[int, float, str, str]  # where a line ends, what it is called, its colour


def _one(frame: Any, line: Line, curve: Curve) -> End:
    """Draw a line."""
    values = [value * UNITS.get(line.what, 1.0) for value in curve.values]
    colour = COLOURS[line.kind]
    if not line.name:
        frame.loglog(curve.sizes, values, color=colour, linewidth=1, alpha=0.4)
        return curve.sizes[-1], values[-1], "", colour
    marker = MARKERS[line.kind] if line.style == "-" else None
    frame.loglog(curve.sizes, values, line.style, color=colour, marker=marker, markersize=4.5, linewidth=1.7)
    counted = line.what in ("steps", "path")
    grown = formula(curve) if counted else f"${line.axis}^{{{curve.fit.exponent:.2f}}}$"
    return curve.sizes[-1], values[-1], f"{line.name}  {grown}", colour


def _dress(frame: Any, panel: Panel, curves: list[Curve]) -> None:
    """Title and axes."""
    sizes = [size for curve in curves for size in curve.sizes]
    powers = [2**power for power in range(20) if min(sizes) <= 2**power <= max(sizes)]
    frame.set_xticks(powers, [f"{size:,}" for size in powers], fontsize=8)
    low, high = frame.get_ylim()
    tens = [10**power for power in range(-2, 6) if low <= 10**power <= high]
    frame.set_yticks(tens, [f"{ten:,g}" for ten in tens], fontsize=8)
    frame.minorticks_off()
    frame.grid(color=FAINT)
    frame.set_axisbelow(True)
    frame.spines[["top", "right"]].set_visible(False)
    frame.set_title(panel.title, loc="left", fontsize=11.5, fontweight="bold", pad=20)
    fixed = " and ".join(dict.fromkeys(curve.at for curve in curves)) if panel.lines[0].what in UNITS else ""
    frame.annotate(
        panel.said + fixed, (0, 1), (0, 7), xycoords="axes fraction", textcoords="offset points", fontsize=8.5
    )
    frame.set_xlabel(panel.along)
    frame.set_ylabel(panel.up)


def _name(frame: Any, ends: list[End]) -> None:
    """Each name right of its line's end."""
    ends = sorted(ends, key=lambda end: end[1])
    at = [float(frame.transData.transform((x, y))[1]) * 72 / frame.figure.dpi for x, y, _, _ in ends]
    for (x, y, told, colour), old, new in zip(ends, at, apart(at, CLOSEST), strict=True):
        frame.annotate(
            told, (x, y), (7, new - old), textcoords="offset points", color=colour, va="center", annotation_clip=False
        )


def apart(heights: list[float], least: float) -> list[float]:
    """Heights in rising order, moved as little as puts `least` between any two: crowds share their middle."""
    groups: list[list[float]] = []  # each: the wished height of its lowest, and how many
    for height in heights:
        groups.append([height, 1.0])
        while len(groups) > 1 and groups[-2][0] + groups[-2][1] * least > groups[-1][0]:
            (one, few), (other, more) = groups[-2:]
            # The lowest's height that is nearest to what all of them wish for.
            groups[-2:] = [[(one * few + (other - few * least) * more) / (few + more), few + more]]
    return [lowest + place * least for lowest, count in groups for place in range(int(count))]
