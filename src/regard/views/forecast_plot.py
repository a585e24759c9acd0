"""Forecasts as tables and as plots: history, median or mean, bands between quantiles, and what came, where known."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.data.series.forecast import SeriesForecast

TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl")
MAX_PANELS = 12  # columns and series that are plotted
HISTORY_STEPS = 3  # plotted rows before the forecast, in multiples of its length


def write_forecasts(forecasts: Sequence["SeriesForecast"], output: Path | None, *, as_json: bool = False) -> list[str]:
    """Write a table, or return its lines if there is no file. Raises RegardError for another suffix."""
    suffix = (".jsonl" if as_json else ".csv") if output is None else output.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise RegardError(f"-o: {output} must end in {', '.join(TABLE_SUFFIXES[:-1])} or {TABLE_SUFFIXES[-1]}.")
    if suffix == ".jsonl":
        lines = [json.dumps(each.as_dict(), ensure_ascii=False) for each in forecasts]
    else:
        text = io.StringIO()
        writer = csv.writer(text, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
        named = any(each.name for each in forecasts)
        writer.writerow([*(["series"] if named else []), "time", *forecasts[0].output_names])
        for each in forecasts:
            for time, *values in each.rows():
                writer.writerow([*([each.name] if named else []), time, *(f"{value:.6g}" for value in values)])
        lines = text.getvalue().splitlines()
    if output is not None:
        output.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return lines


def plot_forecasts(forecasts: Sequence["SeriesForecast"], path: Path) -> None:
    """A panel for every column of every series, at most MAX_PANELS."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = [(each, column) for each in forecasts for column in range(len(each.columns))][:MAX_PANELS]
    figure = Figure(figsize=(9, 2.2 * len(panels) + 0.4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (forecast, column) in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True):
        _draw(axes, forecast, column)
    figure.savefig(path)


def _draw(axes: Any, forecast: "SeriesForecast", column: int) -> None:
    steps = HISTORY_STEPS * len(forecast.times)
    history_times = forecast.history_times[-steps:].astype("datetime64[s]")
    times = forecast.times.astype("datetime64[s]")
    axes.plot(history_times, forecast.history[-steps:, column], color="#5b6770", lw=1, label="history")
    values = forecast.values[:, column]
    for low in range(len(forecast.quantiles) // 2):
        high = len(forecast.quantiles) - 1 - low
        label = f"{forecast.quantiles[low]:g} to {forecast.quantiles[high]:g}"
        axes.fill_between(times, values[:, low], values[:, high], color="#0b62a3", alpha=0.18, lw=0, label=label)
    joined = np.concatenate([forecast.history[-1:, column], forecast.point[:, column]])
    axes.plot(
        np.concatenate([history_times[-1:], times]), joined, color="#0b62a3", lw=1.4,
        label="median" if forecast.quantiles else "forecast",
    )  # fmt: skip
    if np.isfinite(forecast.truth[:, column]).any():
        came = np.concatenate([forecast.history[-1:, column], forecast.truth[:, column]])
        axes.plot(np.concatenate([history_times[-1:], times]), came, color="#5b6770", lw=1, ls=":", label="truth")
    title = ", ".join(filter(None, (forecast.name, forecast.columns[column])))
    axes.set_title(title, fontsize=9, loc="left")
    axes.title.set_parse_math(False)
    axes.grid(alpha=0.3)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=7, loc="upper left", frameon=False, ncols=4)
