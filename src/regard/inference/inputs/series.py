"""Numeric series as inputs: tables in files or uploads, data frames, columns by name, arrays, or prepared windows."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.dataset_kinds.series_windows import model_input
from regard.data.media.base import DecodedMedia, MediaProcessor
from regard.data.series.regular import RegularSeries, describe_report, forward_fill, regular_series
from regard.data.series.table import SeriesTable, read_series_table
from regard.data.series.time import format_time, parse_times, time_format
from regard.data.targets.series import SeriesTarget
from regard.errors import RegardError

UPLOAD = "the table"  # what an upload without a name is called in messages


class LoadedSeries(NamedTuple):
    """Series that were read before. notes: what was changed, as lines."""

    name: str
    series: list[RegularSeries]
    notes: list[str]


@dataclass(frozen=True)
class SeriesWindow:
    """The history that a forecast is made from.

    values: [T, C], standardized. series: where it is from; None for a prepared window. origin: the first row of the
    series that is forecast. notes: what is missing, as lines.
    """

    values: NDArray[np.float32]
    series: RegularSeries | None = None
    origin: int = 0
    notes: list[str] = field(default_factory=list)


class SeriesInputs:
    """Reads series as a run needs them. history: steps that a forecast is made from."""

    def __init__(self, target: SeriesTarget, processor: MediaProcessor, history: int) -> None:
        self.target, self.processor, self.history = target, processor, history

    def read(self, item: Any, report: Counter[str] | None = None) -> list[RegularSeries]:
        """The series of a file, a data frame, columns by name, or an array [steps, columns]. Raises RegardError."""
        report = Counter() if report is None else report
        if isinstance(item, LoadedSeries):
            return item.series
        if isinstance(item, str | Path):
            table = read_series_table(Path(item), self.target.columns)
            return regular_series(table, self.target.step, report)
        if hasattr(item, "to_dict") and hasattr(item, "columns"):
            item = {str(name): list(item[name]) for name in item.columns}
        if isinstance(item, dict):
            return regular_series(self._table_of_columns(item), self.target.step, report)
        return [self._series_of_array(item)]

    def read_upload(self, content: bytes, name: str) -> LoadedSeries:
        """The series of an uploaded table; its format is that of its name, CSV if it has none. Raises RegardError."""
        path, report = Path(name if Path(name).suffix else f"{name or UPLOAD}.csv"), Counter[str]()
        series = regular_series(read_series_table(path, self.target.columns, content), self.target.step, report)
        return LoadedSeries(name or UPLOAD, series, describe_report(report))

    def load_columns(self, columns: dict[str, Any]) -> LoadedSeries:
        """The series of columns by name. Raises RegardError."""
        report = Counter[str]()
        return LoadedSeries(UPLOAD, self.read(columns, report), describe_report(report))

    def windows(self, item: Any, start: str = "") -> tuple[list[SeriesWindow], list[str]]:
        """The window of each series before its forecast, and what was changed, as lines. start: the first time to
        forecast. Raises RegardError."""
        if isinstance(item, DecodedMedia):
            if start:
                raise RegardError("start: an array has no times; leave it out")
            return [SeriesWindow(self.processor.reshape(np.asarray(item.array)))], []
        report = Counter[str]()
        found = [self._window(each, start) for each in self.read(item, report)]
        return found, [*describe_report(report), *(note for each in found for note in each.notes)]

    def _window(self, series: RegularSeries, start: str) -> SeriesWindow:
        origin = self._origin(series, start)
        values = model_input(series, self.target)[max(0, origin - self.history) : origin]
        notes = []
        if self.target.known and origin + self.target.horizon > len(series):
            where = f"series {series.name}: " if series.name else ""
            notes.append(f"{where}{' and '.join(self.target.known)}: the last value is repeated where a row is missing")
        return SeriesWindow(values, series, origin, notes)

    def _origin(self, series: RegularSeries, start: str) -> int:
        """The first row to forecast: the one of a time, or the one after the last row with a value."""
        where = f"series {series.name}: " if series.name else ""
        present = np.isfinite(series.values[:, : len(self.target.targets)]).any(1)
        if not present.any():
            raise RegardError(f"{where}it has no value in {', '.join(self.target.targets)}")
        if not start:
            return int(np.flatnonzero(present)[-1]) + 1
        time = self._parse_start(start)
        after_last = int(series.step.after(int(series.times()[-1]), 1)[-1])
        if not series.start < time <= after_last:
            second = int(series.step.after(series.start, 1)[0])
            first, last = (format_time(each, series.step) for each in (second, after_last))
            raise RegardError(f"start: {where}{start} is outside the series; choose a time from {first} to {last}")
        return int(np.searchsorted(series.times(), time))

    def _parse_start(self, start: str) -> int:
        name = time_format([start])
        if name is None:
            raise RegardError(f"start: {start!r} is not a time, such as 2024-05-31 or 2024-05-31 18:00")
        return int(parse_times([start], name, Path("start"), 1)[0])

    def _series_of_array(self, item: Any) -> RegularSeries:
        try:
            values = np.asarray(item, np.float64)
        except (TypeError, ValueError):
            raise RegardError("this is neither a table nor an array of numbers") from None
        values = values[:, None] if values.ndim == 1 else values
        expected = len(self.target.targets) + len(self.target.known)
        if values.ndim != 2 or values.shape[1] != expected or not len(values):
            raise RegardError(f"its shape is {values.shape}; this model reads (steps, {expected})")
        return RegularSeries("", 0, self.target.step, values, forward_fill(values))

    def _table_of_columns(self, columns: dict[str, Any]) -> SeriesTable:
        """A table from columns by name. Raises RegardError if one is missing, or if their lengths differ."""
        target, where = self.target, Path(UPLOAD)
        needed = (target.time, *target.targets, *target.known)
        for name in needed:
            if name not in columns:
                raise RegardError(f"there is no column {name!r}; there are {', '.join(map(str, columns))}")
            if isinstance(columns[name], str) or not hasattr(columns[name], "__len__"):
                raise RegardError(f"the column {name!r} is not a list")
        named = [target.series] if target.series in columns else []
        lengths = {name: len(columns[name]) for name in (*needed, *named)}
        if len(set(lengths.values())) > 1 or not min(lengths.values()):
            found = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
            raise RegardError(f"its columns must have the same length, at least 1; they have {found}")
        cells = [str(each) for each in columns[target.time]]
        times = parse_times(cells, time_format(cells[:100]), where, 1)
        try:
            parts = [np.asarray(columns[name], np.float64) for name in needed[1:]]
        except (TypeError, ValueError, OverflowError) as error:
            raise RegardError(f"its columns are not all numbers ({error})") from None
        if any(each.ndim != 1 for each in parts):
            raise RegardError("each column must be a list of numbers")
        values = np.stack(parts, 1)
        values[~np.isfinite(values)] = np.nan
        names = [str(each) for each in columns[target.series]] if target.series in columns else None
        return SeriesTable(where, times, names, values, target.columns)
