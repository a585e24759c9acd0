"""Series to forecasts of the steps after their end, or after another time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batch import collate_sources
from regard.data.media.base import DecodedMedia, MediaProcessor
from regard.data.series.forecast import SeriesForecast, point_output
from regard.data.series.table import SUFFIXES
from regard.data.targets.series import SeriesTarget
from regard.errors import RegardError
from regard.inference.inputs.series import LoadedSeries, SeriesInputs, SeriesWindow
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.pipelines.base import FileReport, OnDone, ignore_progress
from regard.inference.results import Result
from regard.interpret.forecast_attention import capture_forecast_attention
from regard.models.heads.forecast import forecast_values
from regard.views.notebook import AttentionView

BATCH_WINDOWS = 64
SHOWN_VALUES = 6  # in the text of a result


class ForecastPipeline:
    """The steps after the end of each series."""

    def __init__(self, run: LoadedRun) -> None:
        assert isinstance(run.target, SeriesTarget)
        assert isinstance(run.source_processor, MediaProcessor)
        self.run, self.target = run, run.target
        self.history = int(getattr(run.description.model.source, "history", 1))
        self.quantiles = tuple(getattr(run.description.model.decoder, "quantiles", ()))
        self.series_inputs = SeriesInputs(self.target, run.source_processor, self.history)

    def check(self, inputs: Sequence[Any]) -> None:
        """Inputs are checked one by one, and each result has its own error."""

    @property
    def example(self) -> Any:
        """A window to warm up with."""
        return DecodedMedia(self.series_inputs.processor.example(), "")

    def results(self, inputs: Sequence[Any], options: Options, on_done: OnDone = ignore_progress) -> list[Result]:
        """A result for each input; its `forecast` has the series of a file."""
        found = []
        for item in inputs:
            name = item.name if isinstance(item, DecodedMedia | LoadedSeries) else str(item)[:100]
            try:
                windows, notes = self.series_inputs.windows(item, options.start)
                result = self._result(name, windows)
            except RegardError as error:
                found.append(Result(name, "", 0.0, [], [], error=str(error).rstrip(".")))
            else:
                found.append(replace(result, notes=notes))
            on_done(1)
        return found

    def _result(self, name: str, windows: Sequence[SeriesWindow]) -> Result:
        values = self.forecast([each.values for each in windows], batch_size=1)  # no bit depends on other series
        forecasts = [self._in_units(window, each) for window, each in zip(windows, values, strict=True)]
        if not all(np.isfinite(each).all() for each in values):
            raise RegardError("its values are so far from those of training that the forecast is not finite")
        first = forecasts[0]
        shown = values[0][:, :, point_output(self.quantiles)] if first is None else first.point
        text = " ".join(f"{value:.2f}" for value in shown[:SHOWN_VALUES, 0])
        found = [each for each in forecasts if each is not None]
        return Result(name, text, 0.0, [], [], forecast=found or None)

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
                each.to(device)
                for each in collate_sources(self.series_inputs.processor, windows[start : start + batch_size])
            )
            features = model(source, mask, torch.zeros(len(source), 1, dtype=torch.int64, device=device)).features
            found += list(forecast_values(model, source, mask, features).sort(-1).values.cpu().numpy())
        return found

    def attend(
        self, source: Any, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> AttentionView:
        """Attention among the steps, patches or columns of a window, and from each step ahead to them."""
        if isinstance(target, str):
            raise RegardError("attend: a forecast has no target; give the series alone.")
        try:
            (window, *_), _ = self.series_inputs.windows(source)
        except RegardError as error:
            raise RegardError(f"{str(source)[:100]}: {str(error).rstrip('.')}.") from None
        captured = capture_forecast_attention(self.run.bundle, window.values, self.target, attribution=attribution)
        return AttentionView.from_captured(captured)

    def write_file(
        self, path: Path, output: Path | None, options: Options | None = None, *, as_json: bool = False
    ) -> FileReport:
        """Forecast the series of a file into a table and a plot beside it, or as lines."""
        from regard.views.forecast_plot import plot_forecasts, write_forecasts

        (result,) = self.results([path], options or Options())
        if result.error:
            raise RegardError(f"{path}: {result.error}." if str(path) not in result.error else f"{result.error}.")
        assert result.forecast is not None
        if output is None:
            return FileReport(write_forecasts(result.forecast, None, as_json=as_json), result.notes)
        write_forecasts(result.forecast, output)
        plot = output.with_suffix(".png")
        plot_forecasts(result.forecast, plot)
        steps, count = len(result.forecast[0].times), len(result.forecast)
        series = "1 series" if count == 1 else f"{count:,} series"
        return FileReport([f"{output}: {steps:,} steps of {series}; {plot} shows them."], result.notes)

    @property
    def step(self) -> str:
        """The time between rows, in words."""
        return str(self.target.step)

    def read_columns(self, columns: Mapping[str, Any]) -> LoadedSeries:
        """The series of columns by name. Raises RegardError."""
        return self.series_inputs.load_columns(dict(columns))

    # --- uploads -----------------------------------------------------------------------------------------------------

    @property
    def upload_suffixes(self) -> tuple[str, ...]:
        """Of tables that can be uploaded."""
        return SUFFIXES

    def read_upload(self, content: bytes, name: str) -> LoadedSeries:
        """The series of an uploaded table. Raises RegardError."""
        return self.series_inputs.read_upload(content, name)

    def wav_bytes(self, content: bytes) -> bytes:
        """Nothing: a table cannot be played."""
        return b""

    def upload_length(self, item: Any) -> int:
        """Positions of an upload that gradients are computed for."""
        return self.history

    def _in_units(self, window: SeriesWindow, standardized: NDArray[np.float32]) -> SeriesForecast | None:
        """A forecast in the units of its series; None for a window that was prepared."""
        series, origin, targets = window.series, window.origin, len(self.target.targets)
        if series is None:
            return None
        times = series.times()[:origin]
        truth = np.full((self.target.horizon, targets), np.nan)
        came = series.values[origin : origin + self.target.horizon, :targets]
        truth[: len(came)] = came
        return SeriesForecast(
            name=series.name,
            columns=self.target.targets,
            quantiles=self.quantiles,
            step=self.target.step,
            times=self.target.step.after(int(times[-1]), self.target.horizon),
            values=self.target.restore(standardized),
            history_times=times[-self.history :],
            history=series.values[max(0, origin - self.history) : origin, :targets],
            truth=truth,
        )
