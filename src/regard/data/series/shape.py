"""What the settings of a model depend on in tables of series: their columns, step and length."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from regard.data.input_validation import read_examples
from regard.data.media_store import resolve_media_path
from regard.data.series.number_files import read_numbers
from regard.data.series.regular import calendar_features, regular_series
from regard.data.series.table import SeriesColumns, read_series_table
from regard.data.series.time import Step
from regard.data.settings import DataSettings
from regard.errors import RegardError

MAX_EXAMPLES = 1000  # whose files are read to see their shape


@dataclass(frozen=True)
class SeriesShape:
    """targets: columns to forecast. covariates: columns that are known in advance. longest: rows of a series."""

    targets: int
    covariates: int
    step: Step
    longest: int


def read_shape(paths: Sequence[Path], settings: Mapping[str, Any]) -> SeriesShape:
    """The shape of the first table. settings: those of `data.series`. Raises RegardError."""
    lists = [settings.get(name) or () for name in ("targets", "known")]
    names = tuple((each,) if isinstance(each, str) else tuple(each) for each in lists)
    given = SeriesColumns(settings.get("time"), settings.get("series"), *names)
    status = paths[0].stat() if paths[0].is_file() else None
    version = (status.st_size, status.st_mtime_ns) if status is not None else (0, 0)
    return _read(paths[0], version, given, bool(settings.get("calendar")))


@dataclass(frozen=True)
class ExampleShape:
    """columns: of every series. longest: the most steps of one."""

    columns: int
    longest: int


def read_example_shape(settings: Mapping[str, Any]) -> ExampleShape | None:
    """The shape of the first series that tables name, each a file; None if there are none. settings: of `data`."""
    data = DataSettings.parse(dict(settings), above="data")
    if not data.pairs or not all(path.is_file() for path in data.pairs):  # reported when they are read
        return None
    shapes = []
    for example in islice(read_examples(data), MAX_EXAMPLES):
        try:
            path = resolve_media_path(example.source, example.file, data.media)
            shapes.append(read_numbers(path).shape)
        except RegardError:  # rejected and counted when it is read as data
            continue
    if not shapes:
        return None
    (columns, _), *_ = Counter(each[1] for each in shapes).most_common(1)
    return ExampleShape(columns, max(steps for steps, count in shapes if count == columns))


@lru_cache(maxsize=4)
def _read(path: Path, version: tuple[int, int], given: SeriesColumns, calendar: bool) -> SeriesShape:
    table = read_series_table(path, given)
    series = regular_series(table, None, Counter())
    step = series[0].step
    covariates = len(table.columns.known)
    if calendar:
        covariates += len(calendar_features(series[0].times()[:1], step)[0])
    return SeriesShape(len(table.columns.targets), covariates, step, max(map(len, series)))
