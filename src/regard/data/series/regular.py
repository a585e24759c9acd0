"""Tables as regular series: one row for each step, duplicates averaged, missing rows and cells filled in."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.data.series.table import SeriesTable
from regard.data.series.time import Step, infer_step
from regard.errors import RegardError

MAX_EXPANSION = 20  # rows of a regular series for each row of its table
MAX_OFF_GRID = 0.25  # of the rows that may lie between two steps
OFF_GRID = 0.1  # of a step: times that are off by more lie between two steps


@dataclass(frozen=True)
class RegularSeries:
    """A series with a row for each step.

    start: the time of the first row. values: [rows, columns], NaN where they are missing. filled: the same with missing
    values replaced by the last one before them, or 0 if there is none.
    """

    name: str
    start: int
    step: Step
    values: NDArray[np.float64]
    filled: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)

    def times(self) -> NDArray[np.int64]:
        """The time of each row."""
        return np.concatenate([[self.start], self.step.after(self.start, len(self) - 1)])


def regular_series(table: SeriesTable, step: Step | None, report: Counter[str]) -> list[RegularSeries]:
    """The series of a table, in the order of their first rows. report: counts what was changed.

    step: between rows; the most common one if not given. Raises RegardError for a table whose rows are not on a grid.
    """
    names = np.array(table.names if table.names is not None else [""] * len(table.times), dtype=object)
    order: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        order.setdefault(str(name), []).append(index)
    groups = {name: np.array(rows) for name, rows in order.items()}
    if step is None:
        longest = max(groups.values(), key=len)
        step = infer_step(table.times[longest])
    found = []
    for name, rows in groups.items():
        where = f"{table.path}{f', series {name}' if name else ''}"
        try:
            found.append(_regular(name, table.times[rows], table.values[rows], step, report))
        except RegardError as error:
            raise RegardError(f"{where}: {error}") from None
    return found


def _regular(
    name: str, times: NDArray[np.int64], values: NDArray[np.float64], step: Step, report: Counter[str]
) -> RegularSeries:
    if (np.diff(times) < 0).any():
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
        report["series whose rows were not in order of time"] += 1
    start = int(times[0])
    index = step.index(times, start)
    if not step.months:
        off_grid = np.abs((times - start) / step.seconds - index) > OFF_GRID
        if off_grid.mean() > MAX_OFF_GRID:
            raise RegardError(
                f"{off_grid.mean():.0%} of its times lie between steps of {step}; resample it to regular steps first."
            )
        report["rows moved to the nearest step"] += int(off_grid.sum())
    count = int(index[-1]) + 1
    if count > MAX_EXPANSION * len(times) + 1000:
        raise RegardError(
            f"its rows are mostly {step} apart, but {len(times):,} rows span {count:,} steps; resample it to regular "
            f"steps first."
        )
    regular = np.full((count, values.shape[1]), np.nan)
    unique, first, counts = np.unique(index, return_index=True, return_counts=True)
    regular[unique] = values[first]
    duplicates = np.flatnonzero(counts > 1)
    for at in duplicates:
        rows = values[first[at] : first[at] + counts[at]]
        present = np.isfinite(rows)
        with np.errstate(invalid="ignore"):
            regular[unique[at]] = np.where(
                present.any(0), np.where(present, rows, 0).sum(0) / np.maximum(1, present.sum(0)), np.nan
            )
    report["rows with a time that another row has, averaged"] += int((counts - 1).sum())
    report["missing rows, filled in"] += count - len(unique)
    report["missing values, filled in"] += int((~np.isfinite(regular[unique])).sum())
    return RegularSeries(name, start, step, regular, forward_fill(regular))


def forward_fill(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Missing values [T, C] replaced by the last one before them; at the beginning, by the first one after them."""
    present = np.isfinite(values)
    if present.all():
        return values
    rows = np.where(present, np.arange(len(values))[:, None], -1)
    last = np.maximum.accumulate(rows, 0)
    first = np.where(present.any(0), present.argmax(0), 0)
    filled = np.take_along_axis(values, np.where(last >= 0, last, first), 0)
    return np.nan_to_num(filled, nan=0.0)


def describe_report(report: Counter[str]) -> list[str]:
    """A line for everything that was changed."""
    return [f"{count:,} {what}" for what, count in report.items() if count]


def calendar_features(times: NDArray[np.int64], step: Step) -> tuple[list[str], NDArray[np.float64]]:
    """Cycles of the calendar that are longer than a step, as sine and cosine: their names, and [T, features]."""
    moments = times.astype("datetime64[s]")
    days = moments.astype("datetime64[D]")
    years, months = moments.astype("datetime64[Y]"), moments.astype("datetime64[M]")
    day_seconds = (moments - days.astype("datetime64[s]")).astype(np.int64)
    weekday = (days.astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday; Monday is 0
    year_day = (days - years.astype("datetime64[D]")).astype(np.int64)
    month = (months - years.astype("datetime64[M]")).astype(np.int64)
    seconds = step.seconds if not step.months else step.months * 31 * 86_400
    cycles: Sequence[tuple[str, int, NDArray[np.float64]]] = (
        ("hour", 3600 * 24, day_seconds / 86_400),
        ("weekday", 86_400 * 7, weekday / 7 + (day_seconds / 86_400 / 7 if seconds < 86_400 else 0)),
        ("day of the year", 86_400 * 365, year_day / 365.25 if seconds < 86_400 * 28 else month / 12),
    )
    names, columns = [], []
    for name, length, phase in cycles:
        if seconds < length:
            names += [f"{name}, sine", f"{name}, cosine"]
            columns += [np.sin(2 * np.pi * phase), np.cos(2 * np.pi * phase)]
    return names, np.stack(columns, 1) if columns else np.zeros((len(times), 0))


def season_length(step: Step) -> int:
    """Steps of the shortest cycle of the calendar that has several: a day, a week, a year; 1 if there is none."""
    if step.months:
        return max(1, 12 // step.months)
    for cycle in (86_400, 7 * 86_400, 365 * 86_400):
        if cycle % step.seconds == 0 and cycle // step.seconds > 1:
            return cycle // step.seconds
    return 52 if step.seconds == 7 * 86_400 else 1
