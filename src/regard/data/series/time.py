"""Times: any usual format to seconds since 1970, and the step of a series.

A time without a zone is taken as it stands; with one, as UTC. Steps of months, quarters and years follow the calendar.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError

EPOCH_SECONDS = (10**8, 10**11)  # 1973 to 5138; numbers from here on are milliseconds, microseconds, nanoseconds
MAX_EPOCH = EPOCH_SECONDS[1] * 10**9  # nanoseconds
YEARS = (1000, 3000)
FORMATS = (  # tried in this order, where the ISO format does not fit
    *("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d"),
    *("%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y", "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%d/%m/%Y"),
    *(
        "%m/%d/%Y %I:%M:%S %p",
        "%m/%d/%Y %I:%M %p",
        "%d-%m-%Y",
        "%d-%b-%Y",
        "%b %d, %Y",
        "%d %b %Y",
        "%b %Y",
        "%Y.%m.%d",
    ),
    *("%Y年%m月%d日", "%Y年%m月"),
)
QUARTER = re.compile(r"(\d{4})[-\s]?[Qq]([1-4])")
MONTH = re.compile(r"(\d{4})[-/](\d{1,2})")
WEEK = re.compile(r"(\d{4})-?W(\d{1,2})")
DAY_SECONDS = 86_400
MONTH_DAYS = (28, 31)  # in a month; a step of so many days is one of the calendar


@dataclass(frozen=True)
class Step:
    """The time between two rows: seconds, or months of the calendar."""

    seconds: int = 0
    months: int = 0

    def __str__(self) -> str:
        units: tuple[tuple[int, str], ...] = ((12, "year"), (3, "quarter"), (1, "month"))
        size = self.months
        if not self.months:
            units = ((7 * DAY_SECONDS, "week"), (DAY_SECONDS, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
            size = self.seconds
        length, name = next((length, name) for length, name in units if size % length == 0)
        count = size // length
        return f"{count} {name}s" if count > 1 else f"1 {name}"

    def index(self, times: NDArray[np.int64], start: int) -> NDArray[np.int64]:
        """How many steps after `start` each time is, rounded to whole steps."""
        if not self.months:
            return np.round((times - start) / self.seconds).astype(np.int64)
        months = times.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
        first = np.array([start], "datetime64[s]").astype("datetime64[M]").astype(np.int64)
        return np.asarray(np.round((months - first) / self.months), np.int64)

    def after(self, start: int, count: int) -> NDArray[np.int64]:
        """The times of the `count` steps that follow a time."""
        steps = np.arange(1, count + 1)
        if not self.months:
            return start + steps * self.seconds
        first = np.array([start], "datetime64[s]")
        offset = first - first.astype("datetime64[M]").astype("datetime64[s]")
        months = first.astype("datetime64[M]") + steps * self.months
        # The same day of each month; its last day if it is shorter, or if the series is of month ends.
        day = offset.astype("timedelta64[D]")
        last = _month_lengths(months) - np.timedelta64(1, "D")
        is_month_end = day == _month_lengths(first.astype("datetime64[M]")) - np.timedelta64(1, "D")
        days = np.where(is_month_end, last, np.minimum(day, last))
        moments = months.astype("datetime64[s]") + days + (offset - day)
        return np.asarray(moments.astype("datetime64[s]").astype(np.int64))


def _month_lengths(months: NDArray[Any]) -> NDArray[Any]:
    """The days of each month."""
    following = (months + np.timedelta64(1, "M")).astype("datetime64[D]")
    return np.asarray(following - months.astype("datetime64[D]"))


def infer_step(times: NDArray[np.int64]) -> Step:
    """The most common time between consecutive rows. Raises RegardError if there is none."""
    gaps = np.diff(np.unique(times))
    if not len(gaps):
        raise RegardError("a series needs at least two different times.")
    days: NDArray[np.float64] = np.asarray(gaps, np.float64) / DAY_SECONDS
    for months in (1, 3, 12):
        low, high = MONTH_DAYS[0] + 30.4 * (months - 1) - 0.1, MONTH_DAYS[1] + 30.7 * (months - 1) + 0.1
        in_range = (days >= low) & (days <= high)
        if in_range.mean() > 0.5 and (months > 1 or len(set(days[in_range].tolist())) > 1 or len(gaps) < 4):
            return Step(months=months)
    values, counts = np.unique(gaps, return_counts=True)
    return Step(seconds=int(values[counts.argmax()]))


def time_format(cells: Sequence[Any]) -> str | None:
    """The format of most of these cells: a strptime format, `iso`, `epoch`, `year`, ...; None if they are no times."""
    present = [cell for cell in cells if cell is not None and str(cell).strip()]
    if not present:
        return None
    for name in ("iso", *FORMATS, "month", "quarter", "week", "epoch", "year"):
        if all(_parse(cell, name) is not None for cell in present):
            return name
    return None


def parse_times(cells: Sequence[Any], name: str | None, path: Path, line: int) -> NDArray[np.int64]:
    """Seconds since 1970. Raises RegardError, with the row, for a cell that is not a time of this format."""
    found = np.empty(len(cells), np.int64)
    for offset, cell in enumerate(cells):
        value = None if name is None else _parse(cell, name)
        if value is None:
            raise RegardError(f"{path}, row {line + offset:,}: {str(cell)[:40]!r} is not a time like those above it.")
        found[offset] = value
    return found


def format_time(seconds: int, step: Step) -> str:
    """A time in the ISO format: a date where steps are whole days."""
    moment = np.datetime64(int(seconds), "s")  # years beyond 9999, too
    whole_days = step.months or step.seconds % DAY_SECONDS == 0
    if whole_days and not seconds % DAY_SECONDS:
        return str(moment.astype("datetime64[D]"))
    return str(moment).replace("T", " ")


def _parse(cell: Any, name: str) -> int | None:
    try:
        return _PARSERS[name](cell) if name in _PARSERS else _seconds(datetime.strptime(str(cell).strip(), name))
    except (ValueError, OverflowError, TypeError):
        return None


def _seconds(moment: datetime) -> int:
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return int(moment.timestamp())


def _iso(cell: Any) -> int:
    if isinstance(cell, datetime):
        return _seconds(cell)
    if isinstance(cell, date):
        return _seconds(datetime(cell.year, cell.month, cell.day))
    text = str(cell).strip()
    if text.isdigit() and len(text) != 8:  # 20240531 is a date, other numbers are not
        raise ValueError
    if len(text) == 8 and text.isdigit() and not YEARS[0] <= int(text[:4]) <= YEARS[1]:
        raise ValueError
    return _seconds(datetime.fromisoformat(text))


def _epoch(cell: Any) -> int:
    value = float(cell)
    if not EPOCH_SECONDS[0] <= value <= MAX_EPOCH:
        raise ValueError
    while value >= EPOCH_SECONDS[1]:
        value /= 1000
    return int(value)


def _year(cell: Any) -> int:
    value = float(cell)
    if value != int(value) or not YEARS[0] <= value <= YEARS[1]:
        raise ValueError
    return _seconds(datetime(int(value), 1, 1))


def _fields(pattern: re.Pattern[str], cell: Any) -> tuple[int, int]:
    match = pattern.fullmatch(str(cell).strip())
    if match is None:
        raise ValueError
    return int(match[1]), int(match[2])


def _month(cell: Any) -> int:
    year, month = _fields(MONTH, cell)
    return _seconds(datetime(year, month, 1))


def _quarter(cell: Any) -> int:
    year, quarter = _fields(QUARTER, cell)
    return _seconds(datetime(year, 3 * quarter - 2, 1))


def _week(cell: Any) -> int:
    return _seconds(datetime.fromisocalendar(*_fields(WEEK, cell), 1))


_PARSERS = {"iso": _iso, "epoch": _epoch, "year": _year, "month": _month, "quarter": _quarter, "week": _week}
