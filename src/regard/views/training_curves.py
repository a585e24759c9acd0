"""Learning curves of a run as an image."""

from pathlib import Path
from typing import Any


def plot_training_curves(log: list[dict[str, Any]], path: Path, title: str) -> None:
    """Training and validation loss over steps, and the validation metric, into a PNG. log: the lines of log.jsonl."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    steps = [line for line in log if line.get("kind") == "step"]
    validations = [line for line in log if line.get("kind") == "validation"]
    figure = Figure(figsize=(8, 4.5), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.plot(
        [line["step"] for line in steps], [line["loss"] for line in steps], color="#9aa5b1", lw=1, label="training"
    )
    axes.plot(
        [line["step"] for line in validations],
        [line["loss"] for line in validations],
        "o-",
        ms=3,
        color="#0b62a3",
        label="validation",
    )
    axes.set(xlabel="step", ylabel="loss per token (nats)", title=title)
    axes.title.set_parse_math(False)
    axes.grid(alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    with_metric = [line for line in validations if line.get("metric") not in (None, "loss")]
    if with_metric:
        metric_axes = axes.twinx()
        metric = str(with_metric[0]["metric"])
        metric_axes.plot(
            [line["step"] for line in with_metric],
            [line["value"] for line in with_metric],
            "s--",
            ms=3,
            color="#c05a00",
            label=metric,
        )
        metric_axes.set_ylabel(f"{metric} on the validation set")
        metric_handles, metric_labels = metric_axes.get_legend_handles_labels()
        handles, labels = handles + metric_handles, labels + metric_labels
    axes.legend(handles, labels, loc="center right", frameon=False)
    figure.savefig(path)
