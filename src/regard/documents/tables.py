"""TSV, CSV and JSONL: a column is read, another is added beside it."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from regard.data.readers import SOURCE_NAMES
from regard.documents import Layout, decoded


class Table:
    """Rows of cells, or of JSON objects. The translation is a new last column, or a new field."""

    def __init__(self, content: bytes, name: str, kind: str, layout: Layout) -> None:
        text, self._mark = decoded(content, name, lenient=True)
        self._kind, self._into = kind, layout.into
        self._end = "\r\n" if "\r\n" in text else "\n"
        self._ends = text.endswith("\n")
        self._rows: list[Any] = _rows(text, name, kind)
        self._header = False
        where = layout.column
        if kind == "jsonl":
            self._column: Any = self._field(name, where)
        else:
            first = [cell.strip().lower() for cell in self._rows[0]] if self._rows else []
            self._header = isinstance(where, str) or any(cell in SOURCE_NAMES[:-1] for cell in first)
            self._column = self._place(name, where, first)
        body = self._rows[1:] if self._header else self._rows
        self.texts: Sequence[str] = [self._cell(row) for row in body]

    def _field(self, name: str, where: str | int | None) -> str:
        if isinstance(where, str):
            return where
        first = next((row for row in self._rows if isinstance(row, dict)), None)
        if first is None:
            raise ValueError(f"{name}: there is no JSON object in it.")
        texts = [key for key, value in first.items() if isinstance(value, str)]
        known = [key for key in texts if key.lower() in (*SOURCE_NAMES, "text")]
        if not known and len(texts) != 1:
            raise ValueError(f"{name}: which field is the text? Name one with --column: {', '.join(first)}.")
        return str(known[0] if known else texts[0])

    def _place(self, name: str, where: str | int | None, first: list[str]) -> int:
        if isinstance(where, str):
            if where.lower() not in first:
                raise ValueError(f"{name}: there is no column {where!r}; the first line has {', '.join(first)}.")
            return first.index(where.lower())
        if where is not None:
            if not 1 <= where <= max(1, len(first)):
                raise ValueError(f"{name}: there is no column {where}; it has {len(first)}, counted from 1.")
            return where - 1
        known = [place for place, cell in enumerate(first) if cell in SOURCE_NAMES] if self._header else []
        return known[0] if known else 0

    def _cell(self, row: Any) -> str:
        if self._kind == "jsonl":
            value = row.get(self._column) if isinstance(row, dict) else None
            return value if isinstance(value, str) else ""
        return str(row[self._column]) if len(row) > self._column else ""

    def written(self, translations: Sequence[str | None]) -> bytes:
        """What has no translation gets an empty cell, or null."""
        if self._kind == "jsonl":
            lines = [
                json.dumps({**row, self._into: said}, ensure_ascii=False) if isinstance(row, dict) else str(row)
                for row, said in zip(self._rows, translations, strict=True)
            ]
        else:
            body = self._rows[1:] if self._header else self._rows
            rows = [[*row, said or ""] for row, said in zip(body, translations, strict=True)]
            if self._header:
                rows.insert(0, [*self._rows[0], self._into])
            lines = [_line(row, self._kind) for row in rows]
        text = self._end.join(lines) + (self._end if self._ends and lines else "")
        return self._mark + text.encode("utf-8", "surrogateescape")


def _rows(text: str, name: str, kind: str) -> list[Any]:
    if kind == "csv":
        csv.field_size_limit(1 << 24)
        try:
            return list(csv.reader(io.StringIO(text, newline=""), strict=True))
        except csv.Error as error:
            raise ValueError(f"{name}: this is not CSV: {error}.") from None
    lines = [line.rstrip("\r") for line in text.split("\n")]
    if lines and not lines[-1]:
        lines.pop()
    if kind == "tsv":
        return [line.split("\t") for line in lines]
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
        except (ValueError, RecursionError):
            if number == 1:
                raise ValueError(f"{name}, line 1: this is not JSON; a .jsonl file has an object a line.") from None
            rows.append(line)  # as it is
    return rows


def _line(cells: list[str], kind: str) -> str:
    if kind == "tsv":
        return "\t".join([*cells[:-1], " ".join(cells[-1].split())])
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(cells)
    return out.getvalue()
