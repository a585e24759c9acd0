"""Tables of numbers with a time column: CSV, TSV, JSON lines, and Parquet where pyarrow is installed.

A cell that is empty or says NA, NaN, null or none is missing. Columns that are not numbers, but for the time and the
name of the series, are not read.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from regard.data.input_files import open_file, suffix_of
from regard.data.series.time import parse_times, time_format
from regard.errors import RegardError

DELIMITED = (".csv", ".tsv", ".txt")
SUFFIXES = (*DELIMITED, ".jsonl", ".ndjson", ".parquet")
MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "-", "?"))
TIME_NAMES = (
    *("date", "time", "datetime", "timestamp", "ds", "day", "month", "year", "hour", "date_time", "datum", "utc"),
    *("utc_timestamp", "period", "week", "日期", "时间"),
)
SERIES_NAMES = ("unique_id", "series", "series_id", "item_id", "id", "store", "sensor", "station")
PREVIEW_ROWS = 100
NUMERIC_SHARE = 0.9  # of the cells of a column of numbers that are present
CHUNK_ROWS = 50_000
MAX_VALUE = 1e30  # of a number: models compute in float32
DECIMAL_COMMA = re.compile(r"[-+]?[\d.]*,\d+")

Cells = list[Any]


@dataclass(frozen=True)
class SeriesColumns:
    """Which columns of tables are read. Those that are not named are found by their names and content.

    time: of times. series: of names of series, if a table has several, one below the other. targets: to forecast.
    known: known in advance, such as prices and holidays.
    """

    time: str | None = None
    series: str | None = None
    targets: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class SeriesTable:
    """The rows of a file. times: seconds since 1970. values: [rows, targets and known columns], NaN where missing."""

    path: Path
    times: NDArray[np.int64]
    names: list[str] | None  # of the series that each row belongs to
    values: NDArray[np.float64]
    columns: SeriesColumns  # with all names


def is_series_table(path: Path) -> bool:
    """Whether a table has a time column and at least one column of numbers, and every other column is numeric, too."""
    if not path.is_file() or suffix_of(path) not in SUFFIXES:
        return False
    try:
        header, rows = _open(path)
        preview = list(islice(rows, PREVIEW_ROWS))
        columns = detect_columns(header, preview, SeriesColumns(), path)
    except RegardError:
        return False
    used = {columns.time, columns.series, *columns.targets, *filter(is_row_number, header)}
    return set(header) <= used and len(preview) > 1


def is_row_number(name: str) -> bool:
    """Whether a column is the index of a data frame that was written without a name: "", or "Unnamed: 0"."""
    return not name or name.startswith("Unnamed:")


def detect_columns(header: list[str], preview: list[Cells], given: SeriesColumns, path: Path) -> SeriesColumns:
    """The columns to read. Raises RegardError if one is missing, or there is nothing to forecast."""
    for name in (given.time, given.series, *given.targets, *given.known):
        if name is not None and name not in header:
            raise RegardError(f"{path}: there is no column {name!r}; there are {', '.join(header[:20])}.")
    cells = {name: [row[at] for row in preview if at < len(row)] for at, name in enumerate(header)}
    time = given.time or _find_time(header, cells)
    if time is None:
        raise RegardError(
            f"{path}: no column has times, such as 2024-05-31 or 2024-05-31 18:00; name it with "
            f"--set data.series.time=NAME."
        )
    rest = [name for name in header if name != time and not is_row_number(name)]
    series = given.series
    if series is None:
        series = next(
            (name for name in rest if name.lower() in SERIES_NAMES and _repeats(cells[name], cells[time])), None
        )
    numeric = [name for name in rest if name != series and _is_numeric(cells[name])]
    targets = given.targets or tuple(name for name in numeric if name not in given.known)
    for name in (*given.targets, *given.known):
        if name not in numeric:
            example = next((str(each) for each in cells[name] if not _is_number(each)), "")
            raise RegardError(f"{path}: the column {name!r} is not numbers; it has {example[:40]!r}.")
    if not targets:
        commas = next((name for name in rest if any(DECIMAL_COMMA.fullmatch(str(each)) for each in cells[name])), None)
        hint = f"; those of {commas!r} are with commas: write 1234.5 for 1.234,5" if commas is not None else ""
        raise RegardError(f"{path}: there is no column of numbers besides {time}{hint}.")
    return SeriesColumns(time, series, targets, given.known)


def read_series_table(path: Path, given: SeriesColumns, content: bytes | None = None) -> SeriesTable:
    """The rows of a file. Raises RegardError, with the line, for what is not a time or a number.

    content: of the file, where it was uploaded; `path` is then only its name.
    """
    header, rows = _open(path, content)
    preview = list(islice(rows, PREVIEW_ROWS))
    if not preview:
        raise RegardError(f"{path}: this table has no rows.")
    columns = detect_columns(header, preview, given, path)
    at = {name: index for index, name in enumerate(header)}
    assert columns.time is not None
    time_at, series_at = at[columns.time], None if columns.series is None else at[columns.series]
    value_at = [at[name] for name in (*columns.targets, *columns.known)]
    parsed_format = time_format([row[time_at] for row in preview if time_at < len(row)])
    times: list[NDArray[np.int64]] = []
    values: list[NDArray[np.float64]] = []
    names: list[str] = []
    line = 2
    everything = chain(preview, rows)
    while chunk := list(islice(everything, CHUNK_ROWS)):
        for offset, row in enumerate(chunk):
            if len(row) != len(header):
                raise RegardError(f"{path}, row {line + offset:,}: it has {len(row)} cells, the header {len(header)}.")
        times.append(parse_times([row[time_at] for row in chunk], parsed_format, path, line))
        values.append(np.stack([_numbers(chunk, column, header[column], path, line) for column in value_at], 1))
        if series_at is not None:
            names += [str(row[series_at]) for row in chunk]
        line += len(chunk)
    return SeriesTable(
        path, np.concatenate(times), names if series_at is not None else None, np.concatenate(values), columns
    )


def _open(path: Path, content: bytes | None = None) -> tuple[list[str], Iterator[Cells]]:
    """The header and the rows of a table."""
    suffix = suffix_of(path)
    if content is None and not path.exists():
        raise RegardError(f"{path}: there is no such file.")
    if suffix == ".parquet":
        return _open_parquet(path, content)
    if suffix in (".jsonl", ".ndjson"):
        return _open_jsonl(path, content)
    if suffix not in DELIMITED:
        raise RegardError(f"{path}: a table of series is one of {', '.join(SUFFIXES)}.")
    text = io.TextIOWrapper(_open_bytes(path, content), encoding="utf-8-sig", errors="strict", newline="")
    try:
        first = text.readline(1 << 20)
    except UnicodeDecodeError:
        raise RegardError(f"{path}: this is not UTF-8.") from None
    if not first.strip():
        raise RegardError(f"{path}: this table is empty.")
    delimiter = max("\t,;|", key=first.count)
    (header,) = csv.reader([first], delimiter=delimiter)
    header = [name.strip() for name in header]
    _check_header(header, path)
    return header, _csv_rows(text, delimiter, path)


def _open_bytes(path: Path, content: bytes | None) -> IO[bytes]:
    return open_file(path) if content is None else io.BytesIO(content)


def _check_header(header: list[str], path: Path) -> None:
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise RegardError(f"{path}: two columns are called {twice!r}; rename one.")
    if len(header) < 2:
        raise RegardError(f"{path}: this table has one column; a series needs a time and a number.")
    if sum(map(_is_number, header)) > len(header) / 2:
        raise RegardError(f"{path}: the first row is numbers; a table of series needs a header with column names.")


def _csv_rows(text: io.TextIOWrapper, delimiter: str, path: Path) -> Iterator[Cells]:
    with text:
        reader = csv.reader(text, delimiter=delimiter)
        try:
            for row in reader:
                if row and any(cell.strip() for cell in row):
                    yield row
        except (csv.Error, UnicodeDecodeError) as error:
            problem = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise RegardError(f"{path}, line {reader.line_num + 2:,}: it cannot be read ({problem}).") from None


def _open_jsonl(path: Path, content: bytes | None) -> tuple[list[str], Iterator[Cells]]:
    def records() -> Iterator[dict[str, Any]]:
        with _open_bytes(path, content) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    raise RegardError(f"{path}, line {number:,}: this is not JSON.") from None
                if not isinstance(record, dict):
                    raise RegardError(f"{path}, line {number:,}: expected a JSON object with a field for each column.")
                yield record

    first = next(iter(records()), None)
    if first is None:
        raise RegardError(f"{path}: this table is empty.")
    header = list(first)
    return header, ([record.get(name) for name in header] for record in records())


def _open_parquet(path: Path, content: bytes | None) -> tuple[list[str], Iterator[Cells]]:
    try:
        from pyarrow import parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise RegardError(f"{path}: Parquet needs pyarrow, which is not installed: pip install pyarrow") from None
    try:
        file = parquet.ParquetFile(path if content is None else io.BytesIO(content))
    except Exception as error:
        raise RegardError(f"{path}: it cannot be read as Parquet ({error}).") from None

    def rows() -> Iterator[Cells]:
        for batch in file.iter_batches(CHUNK_ROWS):
            yield from (list(row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))

    header = [str(name) for name in file.schema_arrow.names]
    _check_header(header, path)
    return header, rows()


def _find_time(header: Sequence[str], cells: dict[str, Cells]) -> str | None:
    """The column of times: by its name, if its cells are times, or the first whose cells are dates."""
    named = [name for name in header if name.lower() in TIME_NAMES]
    for name in named:
        if cells[name] and time_format(cells[name]) is not None:
            return name
    return next(
        (name for name in header if not _is_numeric(cells[name]) and time_format(cells[name]) is not None), None
    )


def _repeats(cells: Cells, times: Cells) -> bool:
    """Whether a column can name series: its cells repeat, or the times do."""
    return len(set(map(str, cells))) < len(cells) or len(set(map(str, times))) < len(times)


def _is_number(cell: Any) -> bool:
    if isinstance(cell, bool) or cell is None:
        return False
    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING)


def _is_numeric(cells: Iterable[Any]) -> bool:
    present = [cell for cell in cells if not _is_missing(cell)]
    return bool(present) and sum(map(_is_number, present)) >= NUMERIC_SHARE * len(present)


def _numbers(rows: list[Cells], column: int, name: str, path: Path, line: int) -> NDArray[np.float64]:
    """A column as numbers, NaN where a cell is missing or not finite."""
    found = np.empty(len(rows))
    for offset, row in enumerate(rows):
        cell = row[column]
        try:
            found[offset] = np.nan if _is_missing(cell) else float(cell)
        except (TypeError, ValueError, OverflowError):
            raise RegardError(
                f"{path}, row {line + offset:,}: {str(cell)[:40]!r} in the column {name!r} is not a number."
            ) from None
    found[~np.isfinite(found)] = np.nan
    if (np.abs(found) > MAX_VALUE).any():
        offset = int(np.nanargmax(np.abs(found)))
        raise RegardError(
            f"{path}, row {line + offset:,}: {str(rows[offset][column])[:40]!r} in the column {name!r} is too large; "
            f"numbers up to {MAX_VALUE:g} are read."
        )
    return found
