"""Rolling backtests: forecasts from every row of test series, by metric and steps ahead, beside simple baselines."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.dataset_kinds.series_windows import SeriesDataset, SeriesWindows, model_input
from regard.data.series.forecast import point_output
from regard.data.series.regular import RegularSeries, describe_report
from regard.data.targets.series import SeriesTarget
from regard.errors import RegardError
from regard.evaluation.metrics import METRICS
from regard.evaluation.metrics._forecast import ForecastMetric, Forecasts, Values
from regard.evaluation.metrics.coverage import CoverageError
from regard.evaluation.report import Progress
from regard.inference.pipelines.forecast import ForecastPipeline

BATCH_WINDOWS = 256
MAX_VALIDATION_WINDOWS = 1000
RIDGE_PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0)
RIDGE_WINDOWS = 20_000  # windows and columns that regression learns from, at most
STEP_GROUPS = 4  # of steps ahead, in a report

Window = NDArray[np.float32]  # [T, C], standardized
System = Callable[[Sequence[Window]], Values]  # windows -> forecasts [N, H, V, Q]


@dataclass(frozen=True)
class BacktestReport:
    """by_step: of each system and metric, the mean error of each step ahead. coverage: the share of values between the
    outermost quantiles, and what it should be, in percent; None for a model without quantiles."""

    run: Path
    windows: int
    horizon: int
    step: str
    columns: tuple[str, ...]
    season: int
    scores: dict[str, dict[str, float]]  # by system and metric
    by_step: dict[str, dict[str, list[float]]]
    coverage: tuple[float, float] | None = None
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "run": str(self.run),
            "windows": self.windows,
            "horizon": self.horizon,
            "step": self.step,
            "columns": list(self.columns),
            "season": self.season,
            "scores": self.scores,
            "by_step": self.by_step,
            "coverage": None if self.coverage is None else dict(zip(("actual", "nominal"), self.coverage, strict=True)),
            "notes": self.notes,
        }

    def lines(self) -> list[str]:
        """Lines for people to read."""
        names = list(self.scores["model"])
        width = max(map(len, self.scores))
        columns = f"{len(self.columns):,} column{'s' if len(self.columns) > 1 else ''}"
        found = [f"{self.windows:,} forecasts of {self.horizon:,} steps of {self.step}, {columns}", *self.notes]
        found.append(f"  {'':{width}} " + " ".join(f"{name:>14}" for name in names))
        for system, scores in self.scores.items():
            cells = (f"{scores[name]:14.4f}" if name in scores else f"{'':14}" for name in names)
            found.append(f"  {system:{width}} " + " ".join(cells).rstrip())
        if self.coverage is not None:
            actual, nominal = self.coverage
            found.append(
                f"  {actual:.1f} % of the values are between the outermost quantiles; nominal are {nominal:.1f} %"
            )
        first = names[0]
        groups = np.array_split(np.arange(self.horizon), min(STEP_GROUPS, self.horizon))
        found.append(f"{first} by steps ahead")
        found.append(f"  {'':{width}} " + " ".join(f"{f'{each[0] + 1}-{each[-1] + 1}':>14}" for each in groups))
        for system, by_metric in self.by_step.items():
            if first in by_metric:
                values = np.array(by_metric[first])
                cells = (f"{float(np.nanmean(values[each])):14.4f}" for each in groups)
                found.append(f"  {system:{width}} " + " ".join(cells))
        return found


def backtest(
    run: Path, pipeline: ForecastPipeline, files: Sequence[Path], metrics: Sequence[str], progress: Progress
) -> BacktestReport:
    """The report of a run on these files. Raises RegardError if no forecast can be compared with what came."""
    target, changes = pipeline.target, Counter[str]()
    chosen = [forecast_metric(name, pipeline.quantiles) for name in metrics]
    if pipeline.quantiles:
        of_quantiles = [name for name, metric in METRICS.items() if getattr(metric, "quantiles", False)]
        chosen += [forecast_metric(name, pipeline.quantiles) for name in sorted(of_quantiles, reverse=True)]
        chosen = list(dict.fromkeys(chosen))
    series = [each for path in files for each in pipeline.series_inputs.read(path, changes)]
    windows = [(each, row) for each in series for row in _forecast_rows(each, pipeline.history, target.horizon)]
    if not windows:
        longest = max(map(len, series), default=0)
        raise RegardError(
            f"{files[0]}: no forecast can be compared: the longest series has {longest:,} rows, and a history and "
            f"{target.horizon:,} steps after it are needed."
        )
    systems: dict[str, System] = {"model": lambda given: np.stack(pipeline.forecast(given)).astype(np.float64)}
    notes = describe_report(changes)
    ridge = fit_ridge(run, pipeline)
    if ridge is not None:
        systems["ridge regression"] = ridge
    else:
        notes.append("no ridge regression: the training data are no longer in the run's folder")
    systems |= naive_systems(target)
    totals = _Totals(target.horizon)
    inputs = {id(each): model_input(each, target) for each in series}
    with progress(f"forecasting with {run}", len(windows)) as advance:
        for start in range(0, len(windows), BATCH_WINDOWS):
            batch = windows[start : start + BATCH_WINDOWS]
            given = [inputs[id(each)][max(0, row - pipeline.history) : row] for each, row in batch]
            truth = np.stack([_truth(each, row, target) for each, row in batch])
            for name, system in systems.items():
                forecasts = _forecasts(system(given), truth, target, pipeline.quantiles if name == "model" else ())
                for metric in chosen:
                    if name == "model" or not metric.quantiles:
                        totals.add(name, metric, forecasts)
            advance(len(batch))
    scores, by_step = totals.results(pipeline.quantiles)
    sizes = len(windows), target.horizon, str(target.step), target.targets, target.season
    coverage = totals.coverage(pipeline.quantiles)
    return BacktestReport(run, *sizes, scores, by_step, coverage, notes)


def validation_score(metric: type[ForecastMetric], pipeline: ForecastPipeline, dataset: SeriesDataset) -> float:
    """A metric of forecasts of a validation set, of at most MAX_VALIDATION_WINDOWS windows spread over it."""
    count = min(len(dataset), MAX_VALIDATION_WINDOWS)
    numbers = np.linspace(0, len(dataset) - 1, count).astype(np.int64).tolist()
    totals = _Totals(pipeline.target.horizon)
    for start in range(0, count, BATCH_WINDOWS):
        batch = numbers[start : start + BATCH_WINDOWS]
        outputs = np.stack(pipeline.forecast([dataset.window(each) for each in batch])).astype(np.float64)
        truth = np.stack([dataset.future(each) for each in batch]).astype(np.float64)
        totals.add("model", metric, _forecasts(outputs, truth, pipeline.target, pipeline.quantiles))
    return totals.results(pipeline.quantiles)[0]["model"][metric.name]


class _Totals:
    """Sums of errors and their counts, by system, metric and step ahead."""

    def __init__(self, horizon: int) -> None:
        self._horizon = horizon
        self._sums: dict[tuple[str, type[ForecastMetric]], Values] = {}
        self._counts: dict[tuple[str, type[ForecastMetric]], Values] = {}

    def add(self, system: str, metric: type[ForecastMetric], forecasts: Forecasts) -> None:
        errors = metric.value_errors(forecasts)
        present = np.isfinite(errors)
        key = system, metric
        self._sums[key] = self._sums.get(key, 0) + np.where(present, errors, 0).sum((0, 2))
        self._counts[key] = self._counts.get(key, 0) + present.sum((0, 2))

    def coverage(self, quantiles: tuple[float, ...]) -> tuple[float, float] | None:
        """The share of values between the model's outermost quantiles and the nominal one, in percent, if counted."""
        key = next((key for key in self._sums if key[0] == "model" and key[1] is CoverageError), None)
        if key is None:
            return None
        return float(self._sums[key].sum() / self._counts[key].sum()), 100 * (quantiles[-1] - quantiles[0])

    def results(
        self, quantiles: tuple[float, ...]
    ) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, list[float]]]]:
        """The scores of each system, and those of each step ahead."""
        scores: dict[str, dict[str, float]] = {}
        by_step: dict[str, dict[str, list[float]]] = {}
        for (system, metric), sums in self._sums.items():
            counts = self._counts[system, metric]
            if not counts.sum():
                raise RegardError("the test set has no values to compare with: all are missing.")
            scores.setdefault(system, {})[metric.name] = float(metric.finish(sums.sum() / counts.sum(), quantiles))
            steps = metric.finish(np.where(counts > 0, sums / np.maximum(1, counts), np.nan), quantiles)
            by_step.setdefault(system, {})[metric.name] = [float(each) for each in steps]
        return scores, by_step


def naive_systems(target: SeriesTarget) -> dict[str, System]:
    """The last value again, and the last season again."""
    count = len(target.targets)

    def last_season(windows: Sequence[Window]) -> Values:
        found = np.empty((len(windows), target.horizon, count, 1))
        for row, window in enumerate(windows):
            season = window[-min(target.season, len(window)) :, :count]
            found[row, ..., 0] = season[np.arange(target.horizon) % len(season)]
        return found

    def last_value(windows: Sequence[Window]) -> Values:
        values = np.stack([window[-1, :count] for window in windows]).astype(np.float64)
        return np.broadcast_to(values[:, None, :, None], (len(windows), target.horizon, count, 1))

    found: dict[str, System] = {"seasonal naive": last_season} if target.season > 1 else {}
    return {**found, "naive": last_value}


def fit_ridge(run: Path, pipeline: ForecastPipeline) -> System | None:
    """One ridge regression for all columns, from the window minus its last value to the steps ahead minus it.

    Fitted to the training data in the run's folder; the penalty is chosen by its validation data. None without these.
    """
    folder = run / "data"
    source = pipeline.run.description.model.source
    if not (folder / "train.values.npy").exists():
        return None
    kind = SeriesWindows()
    own_valid = (folder / "valid.values.npy").exists()
    train = kind.open(folder, "train", "train", source, 0)
    valid = kind.open(folder, "valid" if own_valid else "train", "valid", source, 0)
    history, columns = pipeline.history, len(pipeline.target.targets)
    x, y = _regression_data(train, history, columns)
    if not len(x):
        return None
    eigenvalues, vectors = np.linalg.eigh(x.T @ x)
    rotated = vectors.T @ (x.T @ y)
    validation_x, validation_y = _regression_data(valid, history, columns)
    best: tuple[float, Values] | None = None
    for penalty in RIDGE_PENALTIES:
        weight: Values = vectors @ (rotated / (np.maximum(eigenvalues, 0) + penalty)[:, None])
        error = float(((validation_x @ weight - validation_y) ** 2).mean()) if len(validation_x) else penalty
        if best is None or error < best[0]:
            best = error, weight
    assert best is not None
    weight = best[1]

    def predict(windows: Sequence[Window]) -> Values:
        given = np.zeros((len(windows), history, columns))
        for row, window in enumerate(windows):
            given[row, -len(window) :] = window[:, :columns] - window[-1, :columns]
        last = np.stack([window[-1, :columns] for window in windows]).astype(np.float64)
        ahead = np.einsum("nth,tp->nph", given, weight)
        return np.asarray(ahead + last[:, None])[..., None]

    return predict


def _regression_data(dataset: SeriesDataset, history: int, columns: int) -> tuple[Values, Values]:
    """Windows minus their last value [n, T], and what follows minus it [n, H]; every column is a row."""
    stride = max(1, len(dataset) * columns // RIDGE_WINDOWS)
    xs, ys = [], []
    for number in range(0, len(dataset), stride):
        window, future = dataset.window(number)[:, :columns], dataset.future(number)
        present = np.isfinite(future).all(0)
        if len(window) == history and present.any():
            xs.append((window - window[-1])[:, present].T)
            ys.append((future - window[-1])[:, present].T)
    if not xs:
        return np.zeros((0, history)), np.zeros((0, dataset.horizon))
    return np.concatenate(xs).astype(np.float64), np.concatenate(ys).astype(np.float64)


def forecast_metric(name: str, quantiles: tuple[float, ...]) -> type[ForecastMetric]:
    """The metric of this name. Raises RegardError if it is not of forecasts, or needs quantiles that there are not."""
    metric: Any = METRICS.get(name)
    if metric.inputs != ForecastMetric.inputs:
        raise RegardError(f"--metric: {name} is not a metric of forecasts.")
    if metric.quantiles and not quantiles:
        raise RegardError(f"--metric: {name} needs quantiles; train with --set model.decoder.quantiles=[0.1,0.5,0.9].")
    found: type[ForecastMetric] = metric
    return found


def _forecast_rows(series: RegularSeries, history: int, horizon: int) -> range:
    """The rows of a series that forecasts start at."""
    first = history if len(series) >= history + horizon else max(1, len(series) - horizon)
    return range(first, len(series) - horizon + 1)


def _truth(series: RegularSeries, row: int, target: SeriesTarget) -> Values:
    """[H, V], standardized, NaN where it is missing."""
    count = len(target.targets)
    values = series.values[row : row + target.horizon, :count]
    return np.asarray((values - np.array(target.mean[:count])) / np.array(target.scale[:count]), np.float64)


def _forecasts(outputs: Values, truth: Values, target: SeriesTarget, quantiles: tuple[float, ...]) -> Forecasts:
    count = len(target.targets)
    return Forecasts(
        outputs,
        truth,
        np.array(target.mean[:count]),
        np.array(target.scale[:count]),
        np.array(target.naive_error),
        point_output(quantiles),
        quantiles,
    )
