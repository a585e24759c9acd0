"""Readers of what people have: aligned text files, TSV, CSV, JSONL, gettext PO, TMX, XLIFF; gzipped or not.

Each yields examples with the place they came from. A file that is wrong as a whole stops with one sentence; what is
wrong with a single example is said in its `wrong`, and the door sets it aside.
"""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from regard.data.settings import Column

SOURCE_NAMES = ("source", "src", "input", "question", "en")
TARGET_NAMES = ("target", "tgt", "trg", "output", "answer", "translation")
TOO_MANY_BAD_LINES = 20  # and more than one line in ten: then the file, not the line, is wrong


@dataclass(frozen=True)
class Example:
    """A pair and where it came from; `wrong` says what is the matter with it, if anything is known already."""

    source: str
    target: str
    file: str
    line: int
    wrong: str = ""


@dataclass(frozen=True)
class Layout:
    """Where the two sides are in a file that has both."""

    source_language: str | None = None
    target_language: str | None = None
    source_column: Column | None = None
    target_column: Column | None = None


def read_aligned(source: Path, target: Path) -> Iterator[Example]:
    """Two text files, line by line. Raises ValueError if one is longer than the other."""
    sides = _lines(source), _lines(target)
    number = 0
    while True:
        pair = [next(side, None) for side in sides]
        number += 1
        first, second = pair
        if first is None and second is None:
            return
        if first is None or second is None:
            counts = [
                number - 1 if line is None else number + sum(1 for _ in side)
                for line, side in zip(pair, sides, strict=True)
            ]
            short, long = (source, target) if first is None else (target, source)
            raise ValueError(
                f"{source} has {counts[0]:,} lines and {target} {counts[1]:,}: line {number:,} of {long} has no "
                f"partner in {short}; the two files must have the same sentences in the same order."
            )
        yield Example(first[0], second[0], str(source), number, first[1] or second[1])


def read_pairs(path: Path, layout: Layout) -> Iterator[Example]:
    """A file with both sides; its format is told by its name, `.gz` apart."""
    name = path.name.lower().removesuffix(".gz")
    suffix = name.rpartition(".")[2]
    if suffix in ("tsv", "tab", "csv"):
        return _tables(path, layout, "," if suffix == "csv" else "\t")
    if suffix in ("jsonl", "ndjson"):
        return _json_lines(path, layout)
    if suffix in ("po", "pot"):
        from regard.data.catalogues import read_po

        return read_po(path, _opened(path))
    if suffix in ("tmx", "xlf", "xliff"):
        from regard.data.catalogues import read_tmx, read_xliff

        if suffix == "tmx":
            return read_tmx(path, _opened(path, wide=True), layout)
        return read_xliff(path, _opened(path, wide=True), layout)
    raise ValueError(
        f"{path}: this kind of file is not known; there are .tsv, .csv, .jsonl, .po, .tmx and .xlf, each also "
        f"with .gz. Two text files side by side are given as --source and --target."
    )


def _opened(path: Path, *, wide: bool = False) -> IO[bytes]:
    """The file's bytes, unpacked if its name ends in .gz. Raises ValueError with one sentence.

    `wide`: UTF-16 will do; XML says itself how it is written.
    """
    try:
        if path.is_dir():
            raise ValueError(f"{path}: this is a folder; name a file in it.")
        if path.exists() and not path.is_file():
            raise ValueError(
                f"{path}: this is a pipe or a device, which can be read once only; save it as a file first."
            )
        raw: IO[bytes] = path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"{path}: there is no such file.") from None
    except PermissionError:
        raise ValueError(f"{path}: it cannot be read; check its permissions.") from None
    if path.name.lower().endswith(".gz"):
        unpacked = _Unpacked(path, raw)
        if not wide:
            _check_wide(path, unpacked.peek(2))
        return unpacked
    start = raw.read(4)
    raw.seek(0)
    if start[:2] == b"\x1f\x8b":
        raise ValueError(f"{path}: this is gzipped; give it a name that ends in .gz.")
    if not wide:
        _check_wide(path, start)
    return raw


def _check_wide(path: Path, start: bytes) -> None:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{path}: this is UTF-16; convert it to UTF-8: iconv -f utf-16 -t utf-8 {path} > new file.")


class DamagedError(ValueError):
    """A file that is broken below its format."""


class _Unpacked(io.BufferedReader):
    """gzip whose damage is a sentence."""

    def __init__(self, path: Path, raw: IO[bytes]) -> None:
        self._path = path
        super().__init__(_Careful(path, raw))


class _Careful(io.RawIOBase):
    def __init__(self, path: Path, raw: IO[bytes]) -> None:
        self._path, self._file = path, gzip.GzipFile(fileobj=raw)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return self._file.readinto(buffer)
        except (EOFError, OSError, zlib.error):
            raise DamagedError(f"{self._path}: the gzip file is damaged or cut short; copy it again.") from None


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Each line's text, and what is wrong with it, if anything: only bytes that are not UTF-8 are noticed here."""
    bad = 0
    first_bad = 0
    number = 0
    with _opened(path) as file:
        for number, raw in enumerate(file, 1):
            line = raw.rstrip(b"\r\n")
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            try:
                yield line.decode("utf-8"), ""
            except UnicodeDecodeError:
                bad += 1
                first_bad = first_bad or number
                if bad > TOO_MANY_BAD_LINES and bad * 10 > number:
                    raise ValueError(_not_utf8(path, first_bad)) from None
                yield line.decode("utf-8", "replace"), "not UTF-8"
    if bad and bad * 2 > number:
        raise ValueError(_not_utf8(path, first_bad))


def _not_utf8(path: Path, line: int) -> str:
    return (
        f"{path}, line {line:,}: this is not UTF-8, and many other lines are not; convert the file first, as in: "
        f"iconv -f latin1 -t utf-8 {path} > new file."
    )


def _tables(path: Path, layout: Layout, separator: str) -> Iterator[Example]:
    """TSV and CSV. The first line is a header if columns are asked for by name, or if it names known sides."""
    reader = _rows(path, separator)
    try:
        number, first, wrong = next(reader)
    except StopIteration:
        return
    wanted = (layout.source_column, layout.target_column)
    header = any(isinstance(column, str) for column in wanted) or _looks_like_a_header(first)
    columns = _columns(path, first if header else None, len(first), layout)
    rows = reader if header else _again((number, first, wrong), reader)
    needed = max(columns) + 1
    for number, row, wrong in rows:
        if len(row) < needed:
            if number == 1 and not header:
                raise ValueError(
                    f"{path}, line {number}: only {len(row)} column was found, and two are needed; are the sides "
                    f"separated by {'commas' if separator == ',' else 'tabs'}?"
                )
            yield Example(separator.join(row), "", str(path), number, wrong or f"only {len(row)} column(s)")
            continue
        yield Example(row[columns[0]], row[columns[1]], str(path), number, wrong)


def _again(
    first: tuple[int, list[str], str], rest: Iterator[tuple[int, list[str], str]]
) -> Iterator[tuple[int, list[str], str]]:
    yield first
    yield from rest


def _rows(path: Path, separator: str) -> Iterator[tuple[int, list[str], str]]:
    if separator == "\t":  # no quoting in TSV: a quotation mark is a quotation mark
        for number, (line, wrong) in enumerate(_lines(path), 1):
            if line.strip() or wrong:
                yield number, line.split("\t"), wrong
        return
    wrongs: list[str] = []

    def lines() -> Iterator[str]:
        for line, wrong in _lines(path):
            wrongs.append(wrong)
            yield line + "\n"

    csv.field_size_limit(1 << 24)
    reader = csv.reader(lines(), strict=True)
    while True:
        started = reader.line_num + 1
        wrongs.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            what = "a quotation mark is opened and never closed" if "end of data" in str(error) else f"{error}"
            raise ValueError(f"{path}, line {started:,}: this is not CSV: {what}.") from None
        if row:
            yield started, row, next((wrong for wrong in wrongs if wrong), "")


def _looks_like_a_header(row: list[str]) -> bool:
    names = [name.strip().lower() for name in row]
    return any(name in SOURCE_NAMES[:-1] for name in names) and any(name in TARGET_NAMES for name in names)


def _columns(path: Path, header: list[str] | None, width: int, layout: Layout) -> tuple[int, int]:
    names = [name.strip() for name in header] if header else []
    for wanted in (layout.source_column, layout.target_column):
        if isinstance(wanted, int) and not 1 <= wanted <= max(width, 1):
            raise ValueError(f"{path}: there is no column {wanted}; it has {width}, counted from 1.")
        if isinstance(wanted, str) and wanted not in names:
            raise ValueError(f"{path}: there is no column {wanted!r}; the first line has {', '.join(names)}.")
    source, target = _which(names or [""] * width, layout)
    # Nothing tells where a side is: it is the first column, or the first that the other side has not taken.
    source = source if source is not None else next(place for place in (0, 1) if place != target)
    return source, target if target is not None else next(place for place in (1, 0) if place != source)


def _which(names: list[str], layout: Layout) -> tuple[int | None, int | None]:
    """Which of the fields are source and target: by column, by language, by a usual name, or as the one of two left."""
    lower = [name.lower() for name in names]
    found: list[int | None] = []
    for wanted, language, usual in (
        (layout.source_column, layout.source_language, SOURCE_NAMES),
        (layout.target_column, layout.target_language, TARGET_NAMES),
    ):
        if wanted is not None:
            found.append(wanted - 1 if isinstance(wanted, int) else names.index(wanted) if wanted in names else None)
            continue
        known = ([language.lower()] if language else []) + list(usual)
        places = [lower.index(name) for name in known if name in lower]
        found.append(next((place for place in places if place not in found), None))
    source, target = found
    if len(names) == 2 and (source is None) != (target is None):
        source, target = (1 - target if target is not None else source), (1 - source if source is not None else target)
    return source, target


def _json_lines(path: Path, layout: Layout) -> Iterator[Example]:
    for number, (line, wrong) in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # also a number of thousands of digits
            if number == 1:
                raise ValueError(
                    f"{path}, line 1: this is not JSON; a .jsonl file has one JSON object a line."
                ) from None
            yield Example(line, "", str(path), number, "not JSON")
            continue
        sides = _json_sides(path, number, record, layout)
        if sides is None:
            yield Example(line, "", str(path), number, wrong or "a side is missing")
        else:
            yield Example(*sides, str(path), number, wrong)


def _json_sides(path: Path, number: int, record: Any, layout: Layout) -> tuple[str, str] | None:
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]  # as Hugging Face's datasets write them
    if isinstance(record, list):
        record = {str(place): value for place, value in enumerate(record, 1)}
    if not isinstance(record, dict):
        return None
    names = list(record)
    source, target = _which(names, layout)
    free = layout.source_column is None and layout.target_column is None
    if source is None and target is None and free and len(names) == 2:  # two fields: first and second
        source, target = 0, 1
    for side, place in (("source", source), ("target", target)):
        if (place is None or not 0 <= place < len(names)) and number == 1:
            raise ValueError(
                f"{path}, line 1: no field for the {side}; there are {', '.join(names)}: name one with "
                f"--set data.{side}_column=NAME."
            )
    if source is None or target is None or max(source, target) >= len(names):
        return None
    values = record[names[source]], record[names[target]]
    return values if isinstance(values[0], str) and isinstance(values[1], str) else None
