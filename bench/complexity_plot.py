"""What bench/complexity.py found, as one picture; each line is named at its end."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.complexity_table import count_formula
from bench.layers import Sizes
from bench.power_law import Curve

# Okabe and Ito's colors, distinguishable with color blindness; markers repeat the distinction.
COLORS = {"self-attention": "#0072B2", "recurrent": "#D55E00", "convolutional": "#009E73", "restricted": "#B5528C"}
MARKERS = {"self-attention": "o", "recurrent": "s", "convolutional": "^", "restricted": "D"}
TEXT_COLOR, GRID_COLOR = "#333333", "#E6E6E6"
UNITS = {"forward": 1e3, "both": 1e3, "both memory": 2**-20}
DEFAULT_SIZES = Sizes(0, 0)
MIN_LABEL_DISTANCE = 13.0  # points between two names


@dataclass(frozen=True)
class Line:
    """One line of a panel: the curve it shows and its color. A line without a name is drawn faint."""

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
    subtitle: str = ""  # under the title


def _all_layers(what: str, axis: str = "n") -> list[Line]:
    return [Line(kind, what, axis, name=kind) for kind in COLORS]


def _time_lines(axis: str) -> list[Line]:
    whole = Line("self-attention", "both", axis, "self-attention, whole layer", "with projections", "--")
    return [*_all_layers("both", axis), whole, *(Line(kind, "forward", axis) for kind in COLORS)]


MILLISECONDS, FAINT_FORWARD = "milliseconds, forward and backward", "faint: forward alone; "
PANELS = [
    Panel("Time against length", "n, places", MILLISECONDS, _time_lines("n"), FAINT_FORWARD),
    Panel("Time against width", "d, width", MILLISECONDS, _time_lines("d"), FAINT_FORWARD),
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
            *_all_layers("both memory"),
            Line("self-attention", "both memory", "n", "self-attention, weights kept", "weights kept", "--"),
        ],
        "above inputs and weights; ",
    ),
    Panel(
        "Sequential steps", "n, places", "operations", _all_layers("steps"), "operations that must wait for one another"
    ),
    Panel(
        "Longest path",
        "n, places",
        "applications",
        _all_layers("path"),
        f"from end to end; k = {DEFAULT_SIZES.k}, r = {DEFAULT_SIZES.r}",
    ),
]


def draw(curves: list[Curve], path: Path) -> None:
    """Six panels with logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    curves_by_key = {(curve.layer, curve.axis, curve.what): curve for curve in curves}
    with plt.rc_context():
        plt.rcParams.update(
            {"font.size": 9, "text.color": TEXT_COLOR, "axes.labelcolor": TEXT_COLOR, "axes.edgecolor": "#999999"}
        )
        plt.rcParams.update({"xtick.color": TEXT_COLOR, "ytick.color": TEXT_COLOR})
        figure, grid = plt.subplots(2, 3, figsize=(15, 8.4))
        figure.subplots_adjust(left=0.05, right=0.905, top=0.93, bottom=0.06, wspace=0.68, hspace=0.36)
        for frame, panel in zip(grid.flat, PANELS, strict=True):
            plotted = [(line, curves_by_key[line.variant or line.kind, line.axis, line.what]) for line in panel.lines]
            ends = [_plot_line(frame, line, curve) for line, curve in plotted]
            _format_axes(frame, panel, [curve for _, curve in plotted])
            _label_lines(frame, [end for end in ends if end[2]])
        figure.savefig(path, dpi=100)
        plt.close(figure)


LineEnd = tuple[int, float, str, str]  # the end of a line, its label and color


def _plot_line(frame: Any, line: Line, curve: Curve) -> LineEnd:
    """Draw a line."""
    values = [value * UNITS.get(line.what, 1.0) for value in curve.values]
    color = COLORS[line.kind]
    if not line.name:
        frame.loglog(curve.sizes, values, color=color, linewidth=1, alpha=0.4)
        return curve.sizes[-1], values[-1], "", color
    marker = MARKERS[line.kind] if line.style == "-" else None
    frame.loglog(curve.sizes, values, line.style, color=color, marker=marker, markersize=4.5, linewidth=1.7)
    counted = line.what in ("steps", "path")
    growth = count_formula(curve) if counted else f"${line.axis}^{{{curve.fit.exponent:.2f}}}$"
    return curve.sizes[-1], values[-1], f"{line.name}  {growth}", color


def _format_axes(frame: Any, panel: Panel, curves: list[Curve]) -> None:
    """Title and axes."""
    sizes = [size for curve in curves for size in curve.sizes]
    powers = [2**power for power in range(20) if min(sizes) <= 2**power <= max(sizes)]
    frame.set_xticks(powers, [f"{size:,}" for size in powers], fontsize=8)
    low, high = frame.get_ylim()
    tens = [10**power for power in range(-2, 6) if low <= 10**power <= high]
    frame.set_yticks(tens, [f"{ten:,g}" for ten in tens], fontsize=8)
    frame.minorticks_off()
    frame.grid(color=GRID_COLOR)
    frame.set_axisbelow(True)
    frame.spines[["top", "right"]].set_visible(False)
    frame.set_title(panel.title, loc="left", fontsize=11.5, fontweight="bold", pad=20)
    fixed = " and ".join(dict.fromkeys(curve.at for curve in curves)) if panel.lines[0].what in UNITS else ""
    frame.annotate(
        panel.subtitle + fixed, (0, 1), (0, 7), xycoords="axes fraction", textcoords="offset points", fontsize=8.5
    )
    frame.set_xlabel(panel.along)
    frame.set_ylabel(panel.up)


def _label_lines(frame: Any, ends: list[LineEnd]) -> None:
    """Each name right of its line's end."""
    ends = sorted(ends, key=lambda end: end[1])
    positions = [float(frame.transData.transform((x, y))[1]) * 72 / frame.figure.dpi for x, y, _, _ in ends]
    for (x, y, label, color), position, label_position in zip(
        ends, positions, spread_labels(positions, MIN_LABEL_DISTANCE), strict=True
    ):
        frame.annotate(
            label,
            (x, y),
            (7, label_position - position),
            textcoords="offset points",
            color=color,
            va="center",
            annotation_clip=False,
        )


def spread_labels(heights: list[float], min_distance: float) -> list[float]:
    """Ascending heights, moved as little as needed for `min_distance` between any two; groups keep their middle."""
    groups: list[list[float]] = []  # of each: the preferred height of its lowest label, and their number
    for height in heights:
        groups.append([height, 1.0])
        while len(groups) > 1 and groups[-2][0] + groups[-2][1] * min_distance > groups[-1][0]:
            (lower, lower_count), (upper, upper_count) = groups[-2:]
            # The height of the lowest that is nearest to all preferred heights.
            groups[-2:] = [
                [
                    (lower * lower_count + (upper - lower_count * min_distance) * upper_count)
                    / (lower_count + upper_count),
                    lower_count + upper_count,
                ]
            ]
    return [lowest + index * min_distance for lowest, count in groups for index in range(int(count))]
