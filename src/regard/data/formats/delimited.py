"""The rows of TSV and CSV files, as cells."""

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from regard.data.formats.readers import lines_of
from regard.errors import RegardError

TAB = "\t"
LOOKED_AT = 100  # rows of a table, to see what kind of table it is


def separator_of(path: Path) -> str:
    """Between the cells of a row: in CSV a semicolon, where the first line has no comma, as spreadsheets write it."""
    if path.name.lower().removesuffix(".gz").rpartition(".")[2] != "csv":
        return TAB
    lines = [line for line, _ in islice(lines_of(path), LOOKED_AT)]
    first = lines[0] if lines else ""
    if ";" not in first:
        return ","
    # Texts have commas, too: what separates is as often in every row.
    return ";" if "," not in first or _evenly(lines, ";") > _evenly(lines, ",") else ","


def _evenly(lines: list[str], separator: str) -> float:
    """The share of rows that have as many cells as most have, and more than one."""
    try:
        widths = Counter(map(len, csv.reader(lines, delimiter=separator)))
    except csv.Error:
        return 0.0
    return max((count for width, count in widths.items() if width > 1), default=0) / max(1, widths.total())


def rows_of(path: Path, separator: str) -> Iterator[tuple[int, list[str], str]]:
    if separator == TAB:  # no quoting in TSV: a quotation mark is a quotation mark
        for number, (line, wrong) in enumerate(lines_of(path), 1):
            if line.strip() or wrong:
                yield number, line.split("\t"), wrong
        return
    wrongs: list[str] = []

    def lines() -> Iterator[str]:
        for line, wrong in lines_of(path):
            wrongs.append(wrong)
            yield line + "\n"

    csv.field_size_limit(1 << 24)
    reader = csv.reader(lines(), strict=True, delimiter=separator)
    while True:
        started = reader.line_num + 1
        wrongs.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            what = "a quotation mark is opened and never closed" if "end of data" in str(error) else f"{error}"
            raise RegardError(f"{path}, line {started:,}: this is not CSV: {what}.") from None
        if row:
            yield started, row, next((wrong for wrong in wrongs if wrong), "")


def looked_at(path: Path) -> list[list[str]]:
    """The first rows of a TSV or CSV file."""
    return [row for _, row, _ in islice(rows_of(path, separator_of(path)), LOOKED_AT)]
