"""TSV: cells between tabs, without quoting."""

from regard.documents.delimited_table import DelimitedTable, Row
from regard.documents.document import DOCUMENTS
from regard.documents.table_rows import split_line_end, split_lines


@DOCUMENTS.register("tsv")
class TsvDocument(DelimitedTable):
    """One row a line."""

    suffixes = (".tsv", ".tab")

    def detect_delimiter(self, text: str) -> str:
        return "\t"

    def split_rows(self, text: str, name: str) -> list[Row]:
        return [Row(body, end, body.split("\t")) for body, end in map(split_line_end, split_lines(text))]

    def quote(self, text: str) -> str:
        return " ".join(text.split())
