"""A forecast: the values that a model expects of one series. Imports no PyTorch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.series.time import Step, format_time


@dataclass(frozen=True)
class SeriesForecast:
    """The forecast of one series, in its own units.

    times: of the steps ahead, in seconds since 1970. values: [steps, columns, outputs]; an output is a quantile, or the
    mean if there are no quantiles. history_times, history: the rows that it was made from. truth: [steps, columns], the
    values that came; NaN where they are not known.
    """

    name: str
    columns: tuple[str, ...]
    quantiles: tuple[float, ...]
    step: Step
    times: NDArray[np.int64]
    values: NDArray[np.float64]
    history_times: NDArray[np.int64]
    history: NDArray[np.float64]
    truth: NDArray[np.float64]

    @property
    def point(self) -> NDArray[np.float64]:
        """[steps, columns]: the mean, or the quantile that is nearest to the median."""
        return self.values[..., point_output(self.quantiles)]

    @property
    def has_truth(self) -> bool:
        """Whether anything is known of what came."""
        return bool(np.isfinite(self.truth).any())

    @property
    def output_names(self) -> list[str]:
        """A name for every column and output: `sales`, or `sales 0.1`."""
        if not self.quantiles:
            return list(self.columns)
        return [f"{column} {quantile:g}" for column in self.columns for quantile in self.quantiles]

    def rows(self) -> list[list[Any]]:
        """A row for each step: its time, and every output of every column."""
        flat = self.values.reshape(len(self.values), -1)
        return [
            [format_time(int(time), self.step), *map(float, row)] for time, row in zip(self.times, flat, strict=True)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        outputs = self.values.reshape(len(self.values), -1)
        return {
            **({"series": self.name} if self.name else {}),
            "time": [format_time(int(time), self.step) for time in self.times],
            **{name: outputs[:, index].tolist() for index, name in enumerate(self.output_names)},
        }


def as_response(forecast: SeriesForecast) -> dict[str, Any]:
    """A forecast with its history, as JSON that a chart is drawn from: each column's outputs by name; null where a
    value is missing."""
    names = [f"{quantile:g}" for quantile in forecast.quantiles] or ["mean"]

    def times(values: NDArray[np.int64]) -> list[str]:
        return [format_time(int(each), forecast.step) for each in values]

    def by_column(values: NDArray[np.float64]) -> dict[str, list[float | None]]:
        return {name: _with_nulls(values[:, at]) for at, name in enumerate(forecast.columns)}

    return {
        "series": forecast.name,
        "time": times(forecast.times),
        "columns": {
            column: {name: forecast.values[:, at, output].tolist() for output, name in enumerate(names)}
            for at, column in enumerate(forecast.columns)
        },
        "point": names[point_output(forecast.quantiles)],
        "history": {"time": times(forecast.history_times), "columns": by_column(forecast.history)},
        "truth": by_column(forecast.truth) if forecast.has_truth else None,
    }


def _with_nulls(values: NDArray[np.float64]) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


def point_output(quantiles: tuple[float, ...]) -> int:
    """The output that is the point forecast: the quantile nearest to the median."""
    return int(np.abs(np.array(quantiles) - 0.5).argmin()) if quantiles else 0
