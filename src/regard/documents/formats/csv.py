"""CSV: cells between commas or semicolons, quoted where they need it."""

import csv
import io

from regard.documents.delimited_table import DelimitedTable, Row
from regard.documents.document import DOCUMENTS
from regard.documents.table_rows import split_line_end, split_lines
from regard.errors import RegardError

MAX_FIELD = 1 << 24  # characters of a cell


@DOCUMENTS.register("csv")
class CsvDocument(DelimitedTable):
    """A row may have several lines."""

    suffixes = (".csv",)

    def detect_delimiter(self, text: str) -> str:
        first = text.partition("\n")[0]
        return ";" if ";" in first and "," not in first else ","

    def split_rows(self, text: str, name: str) -> list[Row]:
        csv.field_size_limit(MAX_FIELD)
        lines = split_lines(text)
        reader = csv.reader(lines, strict=True, delimiter=self.delimiter)
        rows: list[Row] = []
        at = 0
        try:
            for cells in reader:
                body, end = split_line_end("".join(lines[at : reader.line_num]))
                at = reader.line_num
                rows.append(Row(body, end, cells))
        except csv.Error as error:
            raise RegardError(f"{name}: this is not CSV: {error}.") from None
        return rows

    def quote(self, text: str) -> str:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n", delimiter=self.delimiter).writerow([text, ""])
        return out.getvalue()[: -len(self.delimiter) - 1]
