"""The base of TSV and CSV: translations of one column are added as another; every other byte stays."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from regard.data.column_detection import SOURCE_NAMES
from regard.data.settings import Column
from regard.documents.document import Document, DocumentLayout
from regard.documents.table_rows import COLUMN_NAMES, append_questions
from regard.documents.text_encoding import decode_utf8
from regard.errors import RegardError


@dataclass(frozen=True)
class Row:
    """A row as it is written, without its line end, and its cells."""

    raw: str
    end: str
    cells: list[str]


class DelimitedTable(Document):
    """The translation goes into the column of its name. A row that has one already stays, and one without a text."""

    delimiter: str

    def __init__(self, content: bytes, name: str, layout: DocumentLayout) -> None:
        text, self._bom = decode_utf8(content, name, lenient=True)
        self.delimiter = self.detect_delimiter(text)
        self._rows = self.split_rows(text, name)
        self._width = len(self._rows[0].cells) if self._rows else 0
        self._target_name = layout.target_column
        names = [cell.strip().lower() for cell in self._rows[0].cells] if self._rows else []
        is_named = isinstance(layout.source_column, str) or isinstance(layout.question_column, str)
        self._has_header = is_named or any(cell in COLUMN_NAMES for cell in names)
        source = self._column(name, layout.source_column, names)
        self._target: int | None = None  # the column of translations, if there is one already
        if self._has_header and self._target_name.lower() in names:
            self._target = names.index(self._target_name.lower())
        self._texts = {
            number: row.cells[source]
            for number, row in enumerate(self._rows)
            if number >= self._has_header
            and len(row.cells) > source
            and row.cells[source].strip()
            and self._needs_translation(row)
        }
        questions: dict[int, object] = {}
        if layout.question_column is not None:
            column = self._column(name, layout.question_column, names)
            rows = {number: self._rows[number].cells for number in self._texts}
            questions = {number: cells[column] for number, cells in rows.items() if len(cells) > column}
        self.texts = append_questions(self._texts, questions)

    @abstractmethod
    def detect_delimiter(self, text: str) -> str:
        """What is between the cells of a row."""

    @abstractmethod
    def split_rows(self, text: str, name: str) -> list[Row]:
        """All rows. Raises RegardError if they are malformed."""

    @abstractmethod
    def quote(self, text: str) -> str:
        """A cell of this text, as it is written."""

    def _needs_translation(self, row: Row) -> bool:
        return self._target is None or (len(row.cells) > self._target and not row.cells[self._target].strip())

    def _column(self, name: str, requested: Column | None, names: list[str]) -> int:
        if isinstance(requested, str):
            if requested.lower() not in names:
                raise RegardError(f"{name}: there is no column {requested!r}; the first line has {', '.join(names)}.")
            return names.index(requested.lower())
        if requested is not None:
            if not 1 <= requested <= max(1, len(names)):
                raise RegardError(f"{name}: there is no column {requested}; it has {len(names)}, counted from 1.")
            return requested - 1
        known = (*COLUMN_NAMES, *SOURCE_NAMES)
        return next((column for column, cell in enumerate(names) if self._has_header and cell in known), 0)

    def write(self, translations: Sequence[str | None]) -> bytes:
        """A text without a translation gets an empty cell."""
        by_row = dict(zip(self._texts, translations, strict=True))
        lines = [
            self._write_row(row, by_row.get(number), is_header=self._has_header and number == 0)
            for number, row in enumerate(self._rows)
        ]
        return self._bom + "".join(lines).encode("utf-8", "surrogateescape")

    def _write_row(self, row: Row, translation: str | None, *, is_header: bool) -> str:
        if not row.raw:
            return row.end
        if self._target is None:
            missing = self.delimiter * (self._width - len(row.cells))  # a row may lack its last cells
            cell = self.quote(self._target_name if is_header else translation or "")
            return f"{row.raw}{missing}{self.delimiter}{cell}{row.end}"
        if translation is None or not self._needs_translation(row):
            return row.raw + row.end
        cells = [self.quote(translation if column == self._target else cell) for column, cell in enumerate(row.cells)]
        return self.delimiter.join(cells) + row.end
