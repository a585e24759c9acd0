"""JSON lines: translations of one field are added as another; every other byte stays."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.data.column_detection import SOURCE_NAMES
from regard.data.settings import Column
from regard.documents.document import DOCUMENTS, Document, DocumentLayout
from regard.documents.table_rows import COLUMN_NAMES, append_questions, split_line_end, split_lines
from regard.documents.text_encoding import decode_utf8
from regard.errors import RegardError


@dataclass(frozen=True)
class _Row:
    """A line without its end; its JSON object, or why it has none."""

    raw: str
    end: str
    record: dict[str, Any] | None = None
    problem: str = ""


@DOCUMENTS.register("jsonl")
class JsonLinesDocument(Document):
    """The translation goes into the field of its name. A record that has one already stays as it is."""

    suffixes = (".jsonl", ".ndjson")

    def __init__(self, content: bytes, name: str, layout: DocumentLayout) -> None:
        text, self._bom = decode_utf8(content, name, lenient=True)
        self._target = layout.target_column
        self._rows = [_parse_row(line, number, name) for number, line in enumerate(split_lines(text), 1)]
        records = {n: row.record for n, row in enumerate(self._rows) if row.record and self._needs_translation(row)}
        source = self._source_field(name, layout.source_column)
        values = {number: record.get(source) for number, record in records.items()}
        questions: dict[int, object] = {}
        if layout.question_column is not None:
            questions = {number: record.get(str(layout.question_column)) for number, record in records.items()}
        self.notes = [
            *(f"line {number:,}: {row.problem}" for number, row in enumerate(self._rows, 1) if row.problem),
            *(
                f"line {number + 1:,}: its text is no string"
                for number, value in values.items()
                if value is not None and not isinstance(value, str)
            ),
        ]
        self._texts = {number: value for number, value in values.items() if isinstance(value, str) and value.strip()}
        self.texts = append_questions(self._texts, questions)

    def _needs_translation(self, row: _Row) -> bool:
        return row.record is not None and not row.record.get(self._target)

    def _source_field(self, name: str, requested: Column | None) -> str:
        if isinstance(requested, str):
            return requested
        first = next((row.record for row in self._rows if row.record is not None), None)
        if first is None:
            raise RegardError(f"{name}: there is no JSON object in it.")
        texts = [key for key, value in first.items() if isinstance(value, str) and key != self._target]
        known = [key for key in texts if key.lower() in (*COLUMN_NAMES, *SOURCE_NAMES)]
        if not known and len(texts) != 1:
            raise RegardError(f"{name}: which field is the text? Name one with --column: {', '.join(first)}.")
        return str(known[0] if known else texts[0])

    def write(self, translations: Sequence[str | None]) -> bytes:
        """A text without a translation gets null."""
        by_row = dict(zip(self._texts, translations, strict=True))
        lines = [self._write_row(row, by_row.get(number)) for number, row in enumerate(self._rows)]
        return self._bom + "".join(lines).encode("utf-8", "surrogateescape")

    def _write_row(self, row: _Row, translation: str | None) -> str:
        if row.record is None or not self._needs_translation(row):
            return row.raw + row.end
        if self._target in row.record:  # as null or empty: the record is written again
            return json.dumps({**row.record, self._target: translation}, ensure_ascii=False) + row.end
        start = row.raw.rstrip()[:-1].rstrip()  # without its last brace
        comma = ", " if row.record else ""
        return f"{start}{comma}{json.dumps(self._target)}: {json.dumps(translation, ensure_ascii=False)}}}{row.end}"


def _parse_row(line: str, number: int, name: str) -> _Row:
    raw, end = split_line_end(line)
    if not raw.strip():
        return _Row(raw, end)
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError):
        if number == 1:
            raise RegardError(f"{name}, line 1: this is not JSON; a .jsonl file has an object a line.") from None
        return _Row(raw, end, problem="this is not JSON")
    if not isinstance(record, dict):
        return _Row(raw, end, problem="this is no JSON object")
    return _Row(raw, end, record)
