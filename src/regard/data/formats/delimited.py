"""TSV and CSV tables. CSV may be separated by commas or semicolons, as spreadsheets write it."""

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from regard.data.column_detection import PREVIEW_ROWS, check_column, detect_columns, detect_header
from regard.data.example import Example, Layout, append_question
from regard.data.input_files import read_lines, suffix_of
from regard.data.readers import READERS, Reader, TablePreview
from regard.errors import RegardError

TAB = "\t"
MAX_FIELD = 1 << 24  # characters of a cell

Row = tuple[int, list[str], str]  # line number, cells, problem


@READERS.register("delimited")
class DelimitedReader(Reader):
    """Rows of cells. The first row is a header if columns are selected by name, if it has usual column names, or if it
    differs from the rows below it."""

    suffixes = (".tsv", ".tab", ".csv")

    def read(self, path: Path, layout: Layout) -> Iterator[Example]:
        delimiter = detect_delimiter(path)
        preview = [row for _, row, _ in islice(read_rows(path, delimiter), PREVIEW_ROWS)]
        reader = read_rows(path, delimiter)
        first_row = next(reader, None)
        if first_row is None:
            return
        first = first_row[1]
        has_header = detect_header(preview, layout)
        header = first if has_header else None
        source, target = detect_columns(path, header, preview, layout)
        question = check_column(path, header, len(first), layout.question_column)
        needed = max(source, target) + 1
        for number, row, problem in reader if has_header else chain([first_row], reader):
            if len(row) < needed:
                if number == 1 and not has_header:
                    raise RegardError(
                        f"{path}, line {number}: only {len(row)} column was found, and two are needed; are the sides "
                        f"separated by {'commas or semicolons' if delimiter != TAB else 'tabs'}?"
                    )
                yield Example(delimiter.join(row), "", str(path), number, problem or f"only {len(row)} column(s)")
                continue
            text = row[source]
            if question is not None:
                text = append_question(text, row[question] if question < len(row) else "")
            # With a separator inside a text, the columns of the sides are not known.
            more = f"{len(row)} columns, where the first line has {len(first)}" if len(row) > len(first) else ""
            yield Example(text, row[target], str(path), number, problem or more)

    def read_documents(self, path: Path) -> Iterator[Example]:
        raise RegardError(f"{path}: this is a table, and plain text is expected: a text file, or JSON lines with text.")

    def preview(self, path: Path) -> TablePreview:
        return TablePreview(rows=[row for _, row, _ in islice(read_rows(path, detect_delimiter(path)), PREVIEW_ROWS)])


def detect_delimiter(path: Path) -> str:
    """A tab; for CSV a comma, or a semicolon where that gives more rows the same number of cells."""
    if suffix_of(path) != ".csv":
        return TAB
    lines = [line for line, _ in islice(read_lines(path), PREVIEW_ROWS)]
    first = lines[0] if lines else ""
    if ";" not in first:
        return ","
    # Texts have commas, too: a delimiter is equally often in every row.
    return ";" if "," not in first or _regularity(lines, ";") > _regularity(lines, ",") else ","


def _regularity(lines: list[str], delimiter: str) -> float:
    """The share of rows that have the most frequent number of cells above one."""
    try:
        widths = Counter(map(len, csv.reader(lines, delimiter=delimiter)))
    except csv.Error:
        return 0.0
    return max((count for width, count in widths.items() if width > 1), default=0) / max(1, widths.total())


def read_rows(path: Path, delimiter: str) -> Iterator[Row]:
    """The rows that are not blank. Raises RegardError for CSV that is malformed."""
    if delimiter == TAB:  # TSV has no quoting
        for number, (line, problem) in enumerate(read_lines(path), 1):
            if line.strip() or problem:
                yield number, line.split(TAB), problem
        return
    problems: list[str] = []

    def lines() -> Iterator[str]:
        for line, problem in read_lines(path):
            problems.append(problem)
            yield line + "\n"

    csv.field_size_limit(MAX_FIELD)
    reader = csv.reader(lines(), strict=True, delimiter=delimiter)
    while True:
        first_line = reader.line_num + 1
        problems.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            what = "a quotation mark is opened and never closed" if "end of data" in str(error) else f"{error}"
            raise RegardError(f"{path}, line {first_line:,}: this is not CSV: {what}.") from None
        if row:
            yield first_line, row, next((problem for problem in problems if problem), "")
