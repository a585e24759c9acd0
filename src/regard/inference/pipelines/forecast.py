"""Series to forecasts: files, data frames, arrays, or windows that were standardized before."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batch import collate_sources
from regard.data.dataset_kinds.series_windows import model_input
from regard.data.media.base import DecodedMedia, MediaProcessor
from regard.data.series.forecast import SeriesForecast, point_output
from regard.data.series.regular import RegularSeries, forward_fill, regular_series
from regard.data.series.table import SeriesTable, read_series_table
from regard.data.series.time import parse_times, time_format
from regard.data.targets.series import SeriesTarget
from regard.errors import RegardError
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.pipelines.base import OnDone, ignore_progress
from regard.inference.results import Result
from regard.interpret.captured_attention import Axis, Kind, Weights
from regard.models.heads.forecast import forecast_values
from regard.views.notebook import AttentionView

BATCH_WINDOWS = 64
SHOWN_VALUES = 6  # in the text of a result


class ForecastPipeline:
    """The steps after the end of each series."""

    def __init__(self, run: LoadedRun) -> None:
        assert isinstance(run.target, SeriesTarget)
        assert isinstance(run.source_processor, MediaProcessor)
        self.run, self.target, self.processor = run, run.target, run.source_processor
        self.history = int(getattr(run.description.model.source, "history", 1))
        self.quantiles = tuple(getattr(run.description.model.decoder, "quantiles", ()))

    def check(self, inputs: Sequence[Any]) -> None:
        """Inputs are checked one by one, and each result has its own error."""

    @property
    def example(self) -> Any:
        """A window to warm up with."""
        return DecodedMedia(self.processor.example(), "")

    def results(self, inputs: Sequence[Any], options: Options, on_done: OnDone = ignore_progress) -> list[Result]:
        """A result for each input; its `forecast` has the series of a file."""
        loaded = [self._load(item) for item in inputs]
        windows = [window for series, _ in loaded for _, window in series]
        values = iter(self.forecast(windows, batch_size=1))  # so that no bit depends on the other inputs
        found = []
        for item, (series, error) in zip(inputs, loaded, strict=True):
            name = item.name if isinstance(item, DecodedMedia) else str(item)[:100]
            forecasts, text = [], ""
            for regular, _ in series:
                standardized = next(values)
                if regular is None:
                    text = _describe(standardized[:, :, point_output(self.quantiles)])
                else:
                    forecasts.append(self._in_units(regular, standardized))
                    text = text or _describe(forecasts[0].point)
            found.append(Result(name, text, 0.0, [], [], error=error, forecast=forecasts or None))
            on_done(1)
        return found

    @torch.inference_mode()
    def forecast(
        self, windows: Sequence[NDArray[np.float32]], batch_size: int = BATCH_WINDOWS
    ) -> list[NDArray[np.float32]]:
        """Standardized forecasts [H, V, Q] of standardized windows [T, C]."""
        model = self.run.bundle.model
        device = next(model.parameters()).device
        found: list[NDArray[np.float32]] = []
        for start in range(0, len(windows), batch_size):
            source, mask = (
                each.to(device) for each in collate_sources(self.processor, windows[start : start + batch_size])
            )
            features = model(source, mask, torch.zeros(len(source), 1, dtype=torch.int64, device=device)).features
            found += list(forecast_values(model, source, mask, features).sort(-1).values.cpu().numpy())
        return found

    def attend(
        self, source: Any, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> AttentionView:
        """Attention among the steps, patches or columns of a window, and from each step ahead to them."""
        if attribution:
            raise RegardError("attend: gradient times input is for models of text, images and recordings.")
        if isinstance(target, str):
            raise RegardError("attend: a forecast has no target; give the series alone.")
        series, error = self._load(source)
        if error:
            raise RegardError(f"{str(source)[:100]}: {error}.")
        window = series[0][1]
        model = self.run.bundle.model
        with torch.inference_mode():
            batch, mask = collate_sources(self.processor, [window])
            decoded = model(batch, mask, torch.zeros(1, 1, dtype=torch.int64), need_weights=True)
        # The mean over columns, where each is a sequence of its own.
        weights: dict[Kind, list[Weights]] = {}
        if decoded.cross_attention:
            weights["cross"] = [each.float().mean(0).cpu().numpy() for each in decoded.cross_attention]
        if decoded.encoder_attention:
            weights["encoder"] = [each.float().mean(0).cpu().numpy() for each in decoded.encoder_attention]
        if not weights:
            raise RegardError("attend: this model has no attention; forecasts depend on all steps alike.")
        count = next(iter(weights.values()))[0].shape[-1]
        positions = self.processor.positions(window, count)
        labels = positions.labels
        if positions.unit == "columns":
            labels = (*self.target.targets, *self.target.known, *labels)[:count]
        axis = Axis(labels, (False,) * count, positions.unit)
        ahead = tuple(f"+{step}" for step in range(1, self.target.horizon + 1))
        steps = Axis(ahead, (False,) * len(ahead), "steps")
        return AttentionView(axis, steps, steps, weights)

    def write_file(self, path: Path, output: Path | None, *, as_json: bool = False) -> list[str]:
        """Forecast the series of a file into a table and a plot beside it, or as lines. Returns lines to print."""
        from regard.views.forecast_plot import plot_forecasts, write_forecasts

        (result,) = self.results([path], Options())
        if result.error:
            raise RegardError(f"{path}: {result.error}." if str(path) not in result.error else f"{result.error}.")
        assert result.forecast is not None
        if output is None:
            return write_forecasts(result.forecast, None, as_json=as_json)
        write_forecasts(result.forecast, output)
        plot = output.with_suffix(".png")
        plot_forecasts(result.forecast, plot)
        steps = len(result.forecast[0].times)
        return [f"{output}: {steps:,} steps of {len(result.forecast):,} series; {plot} shows them."]

    def _load(self, item: Any) -> tuple[list[tuple[RegularSeries | None, NDArray[np.float32]]], str]:
        """The series of an input, each with its window; or why there are none."""
        if isinstance(item, DecodedMedia):
            return [(None, self.processor.reshape(np.asarray(item.array)))], ""
        try:
            series = self.read(item)
        except RegardError as error:
            return [], str(error).rstrip(".")
        return [(each, model_input(each, self.target)[-self.history :]) for each in series], ""

    def read(self, item: Any, report: Counter[str] | None = None) -> list[RegularSeries]:
        """The series of a file, a data frame, columns by name, or an array [steps, columns]. Raises RegardError."""
        report = Counter() if report is None else report
        if isinstance(item, str | Path):
            table = read_series_table(Path(item), self.target.columns)
            return regular_series(table, self.target.step, report)
        if hasattr(item, "to_dict") and hasattr(item, "columns"):
            item = {str(name): list(item[name]) for name in item.columns}
        if isinstance(item, dict):
            return regular_series(_table_of_columns(item, self.target), self.target.step, report)
        values = np.asarray(item, np.float64)
        values = values[:, None] if values.ndim == 1 else values
        expected = len(self.target.targets) + len(self.target.known)
        if values.ndim != 2 or values.shape[1] != expected or not len(values):
            raise RegardError(f"its shape is {values.shape}; this model reads (steps, {expected})")
        return [RegularSeries("", 0, self.target.step, values, forward_fill(values))]

    def _in_units(self, series: RegularSeries, standardized: NDArray[np.float32]) -> SeriesForecast:
        times = series.times()[-self.history :]
        return SeriesForecast(
            name=series.name,
            columns=self.target.targets,
            quantiles=self.quantiles,
            step=self.target.step,
            times=self.target.step.after(int(times[-1]), self.target.horizon),
            values=self.target.restore(standardized),
            history_times=times,
            history=series.values[-self.history :, : len(self.target.targets)],
        )


def _describe(values: NDArray[Any]) -> str:
    """The first values of the first column."""
    return " ".join(f"{value:.2f}" for value in values[:SHOWN_VALUES, 0])


def _table_of_columns(columns: dict[str, Any], target: SeriesTarget) -> SeriesTable:
    """A table from columns by name. Raises RegardError if one is missing."""
    for name in (target.time, *target.targets, *target.known):
        if name not in columns:
            raise RegardError(f"there is no column {name!r}; there are {', '.join(map(str, columns))}")
    cells = [str(each) for each in columns[target.time]]
    times = parse_times(cells, time_format(cells[:100]), Path("the series"), 1)
    values = np.stack([np.asarray(columns[name], np.float64) for name in (*target.targets, *target.known)], 1)
    names = [str(each) for each in columns[target.series]] if target.series in columns else None
    return SeriesTable(Path("the series"), times, names, values, target.columns)
