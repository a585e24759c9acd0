"""Learning curves of a run as a picture."""

from pathlib import Path
from typing import Any


def draw_curves(log: list[dict[str, Any]], path: Path, title: str) -> None:
    """Loss of training and validation over steps, and the validation's score, into a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    steps = [line for line in log if line.get("kind") == "step"]
    judged = [line for line in log if line.get("kind") == "validation"]
    figure = Figure(figsize=(8, 4.5), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.plot(
        [line["step"] for line in steps], [line["loss"] for line in steps], color="#9aa5b1", lw=1, label="training"
    )
    axes.plot(
        [line["step"] for line in judged],
        [line["loss"] for line in judged],
        "o-",
        ms=3,
        color="#0b62a3",
        label="validation",
    )
    axes.set(xlabel="step", ylabel="loss per token (nats)", title=title)
    axes.title.set_parse_math(False)
    axes.grid(alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    scored = [line for line in judged if line.get("measure") not in (None, "loss")]
    if scored:
        right = axes.twinx()
        name = str(scored[0]["measure"])
        right.plot(
            [line["step"] for line in scored],
            [line["value"] for line in scored],
            "s--",
            ms=3,
            color="#c05a00",
            label=name,
        )
        right.set_ylabel(f"{name} on the validation set")
        more, names = right.get_legend_handles_labels()
        handles, labels = handles + more, labels + names
    axes.legend(handles, labels, loc="center right", frameon=False)
    figure.savefig(path)
