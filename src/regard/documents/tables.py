"""TSV, CSV and JSONL: a column is read, another is added or, where it is there, filled; every other byte stays."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.data.columns import SOURCE_NAMES
from regard.documents import Layout, decoded
from regard.errors import RegardError

NAMES = (*SOURCE_NAMES[:-1], "text", "sentence")  # of a source's column; a first row with one of them is a header


@dataclass
class _Row:
    """A row as it is written, without its line end; its cells, or its JSON object, or why it has neither."""

    raw: str
    end: str
    cells: list[str] = field(default_factory=list)
    record: dict[str, Any] | None = None
    wrong: str = ""


class Table:
    """Rows of cells, or of JSON objects. The translation goes into the column or the field of its name.

    A row that has one already stays as it is, and so does one without a text; what could not be read is in `notes`.
    """

    def __init__(self, content: bytes, name: str, kind: str, layout: Layout) -> None:
        text, self._mark = decoded(content, name, lenient=True)
        self._kind, self._into = kind, layout.into
        self._between = "\t"
        if kind == "csv":
            first = text.partition("\n")[0]
            self._between = ";" if ";" in first and "," not in first else ","
        self._rows = _json_rows(text, name) if kind == "jsonl" else _cell_rows(text, name, kind, self._between)
        self.notes: Sequence[str] = [f"line {n:,}: {row.wrong}" for n, row in enumerate(self._rows, 1) if row.wrong]
        self._header = False
        self._width = len(self._rows[0].cells) if self._rows else 0
        self._target: int | None = None  # the column of translations that is there already
        questions: dict[int, Any] = {}
        if kind == "jsonl":
            key = self._field(name, layout.column)
            cells = {n: (row.record or {}).get(key) for n, row in enumerate(self._rows) if self._is_open(row)}
            if layout.question is not None:
                questions = {n: (self._rows[n].record or {}).get(str(layout.question)) for n in cells}
        else:
            heads = [cell.strip().lower() for cell in self._rows[0].cells] if self._rows else []
            where = layout.column
            named = isinstance(where, str) or isinstance(layout.question, str)
            self._header = named or any(cell in NAMES for cell in heads)
            column = self._place(name, where, heads)
            if self._header and self._into.lower() in heads:
                self._target = heads.index(self._into.lower())
            cells = {
                n: row.cells[column]
                for n, row in enumerate(self._rows)
                if n >= self._header and len(row.cells) > column and self._is_open(row)
            }
            if layout.question is not None:
                asked = self._place(name, layout.question, heads)
                questions = {n: self._rows[n].cells[asked] for n in cells if len(self._rows[n].cells) > asked}
        strange = [n for n, cell in cells.items() if cell is not None and not isinstance(cell, str)]
        self.notes = [*self.notes, *(f"line {n + 1:,}: its text is no string" for n in strange)]
        self._told = {n: cell for n, cell in cells.items() if isinstance(cell, str) and cell.strip()}
        for n, question in questions.items():
            if n in self._told and isinstance(question, str) and question.strip():
                self._told[n] += f"\t{question}"
        self.texts: Sequence[str] = list(self._told.values())

    def _is_open(self, row: _Row) -> bool:
        """Whether there is room for a translation."""
        if self._kind == "jsonl":
            return row.record is not None and not row.record.get(self._into)
        return self._target is None or (len(row.cells) > self._target and not row.cells[self._target].strip())

    def _field(self, name: str, where: str | int | None) -> str:
        if isinstance(where, str):
            return where
        first = next((row.record for row in self._rows if row.record is not None), None)
        if first is None:
            raise RegardError(f"{name}: there is no JSON object in it.")
        texts = [key for key, value in first.items() if isinstance(value, str) and key != self._into]
        known = [key for key in texts if key.lower() in (*NAMES, *SOURCE_NAMES)]
        if not known and len(texts) != 1:
            raise RegardError(f"{name}: which field is the text? Name one with --column: {', '.join(first)}.")
        return str(known[0] if known else texts[0])

    def _place(self, name: str, where: str | int | None, heads: list[str]) -> int:
        if isinstance(where, str):
            if where.lower() not in heads:
                raise RegardError(f"{name}: there is no column {where!r}; the first line has {', '.join(heads)}.")
            return heads.index(where.lower())
        if where is not None:
            if not 1 <= where <= max(1, len(heads)):
                raise RegardError(f"{name}: there is no column {where}; it has {len(heads)}, counted from 1.")
            return where - 1
        known = [place for place, cell in enumerate(heads) if cell in (*NAMES, *SOURCE_NAMES)] if self._header else []
        return known[0] if known else 0

    def written(self, translations: Sequence[str | None]) -> bytes:
        """What has no translation gets an empty cell, or null."""
        said = dict(zip(self._told, translations, strict=True))
        lines = [self._line(row, said.get(n), head=self._header and n == 0) for n, row in enumerate(self._rows)]
        return self._mark + "".join(lines).encode("utf-8", "surrogateescape")

    def _line(self, row: _Row, said: str | None, *, head: bool) -> str:
        if self._kind == "jsonl":
            if not self._is_open(row):
                return row.raw + row.end
            inside = row.raw.rstrip()[:-1].rstrip()  # without its last brace
            if row.record is not None and self._into in row.record:  # as null or as nothing: written anew
                return json.dumps({**row.record, self._into: said}, ensure_ascii=False) + row.end
            comma = ", " if row.record else ""
            return f"{inside}{comma}{json.dumps(self._into)}: {json.dumps(said, ensure_ascii=False)}}}{row.end}"
        if not row.raw:
            return row.end
        if self._target is None:
            short = self._between * (self._width - len(row.cells))  # a row may lack its last cells
            return f"{row.raw}{short}{self._between}{self._cell(self._into if head else said or '')}{row.end}"
        if said is None or not self._is_open(row):
            return row.raw + row.end
        cells = [self._cell(said if n == self._target else cell) for n, cell in enumerate(row.cells)]
        return self._between.join(cells) + row.end

    def _cell(self, text: str) -> str:
        if self._kind == "tsv":
            return " ".join(text.split())
        out = io.StringIO()
        csv.writer(out, lineterminator="\n", delimiter=self._between).writerow([text, ""])
        return out.getvalue()[: -len(self._between) - 1]


def _lines(text: str) -> list[str]:
    return io.StringIO(text, newline="").readlines()


def _apart(line: str) -> tuple[str, str]:
    """A line without its end, and its end."""
    body = line.rstrip("\r\n")
    return body, line[len(body) :]


def _cell_rows(text: str, name: str, kind: str, between: str) -> list[_Row]:
    lines = _lines(text)
    if kind == "tsv":
        return [_Row(body, end, body.split("\t")) for body, end in map(_apart, lines)]
    csv.field_size_limit(1 << 24)
    reader = csv.reader(lines, strict=True, delimiter=between)
    rows: list[_Row] = []
    at = 0
    try:
        for cells in reader:  # a row may have several lines
            whole = "".join(lines[at : reader.line_num])
            at = reader.line_num
            rows.append(_Row(*_apart(whole), cells))
    except csv.Error as error:
        raise RegardError(f"{name}: this is not CSV: {error}.") from None
    return rows


def _json_rows(text: str, name: str) -> list[_Row]:
    rows: list[_Row] = []
    for number, line in enumerate(_lines(text), 1):
        row = _Row(*_apart(line))
        rows.append(row)
        if not row.raw.strip():
            continue
        try:
            found = json.loads(row.raw)
        except (ValueError, RecursionError):
            if number == 1:
                raise RegardError(f"{name}, line 1: this is not JSON; a .jsonl file has an object a line.") from None
            row.wrong = "this is not JSON"
            continue
        row.record = found if isinstance(found, dict) else None
        row.wrong = "" if isinstance(found, dict) else "this is no JSON object"
    return rows
