"""People's files, translated and put back: text, tables, PO, XLIFF, TMX.

A document gives the texts in it that are to be translated, and writes itself again with translations in their places;
everything else stays as it was, byte for byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from regard.data.input_validation import LONE_SURROGATE
from regard.data.settings import Column
from regard.errors import RegardError


@dataclass(frozen=True)
class Layout:
    """What a person may say about a file: languages, columns, paragraphs."""

    source_language: str | None = None
    target_language: str | None = None
    column: Column | None = None  # of a table: where the source is
    question: Column | None = None  # of a table: what is asked about the source, of models that answer
    into: str = "translation"  # of a table with names: where the translation goes
    paragraphs: bool = False  # of a text: each line is a paragraph of several sentences
    kind: str | None = None  # how to read it, where its name does not say: text, tsv, csv, jsonl, po, xliff, tmx


class Document(Protocol):
    """A file that was read."""

    texts: Sequence[str]  # what is to be translated, in order
    notes: Sequence[str]  # on what could not be read and stays as it is

    def written(self, translations: Sequence[str | None]) -> bytes:
        """The whole file with a translation for each text; None where there is none."""
        ...


KINDS = {
    "txt": "text",
    "text": "text",
    "tsv": "tsv",
    "tab": "tsv",
    "csv": "csv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "po": "po",
    "pot": "po",
    "xlf": "xliff",
    "xliff": "xliff",
    "tmx": "tmx",
}

# Lines of these are not text alone: translating them line by line would break them.
OTHERS = frozenset(
    """docx xlsx pptx odt ods odp pdf rtf epub doc xls ppt zip png jpg json html htm xhtml xml srt vtt yaml yml toml ini
    properties strings resx arb""".split()  # noqa: SIM905
)


def kind_of(path: PurePath, layout: Layout) -> str:
    """Which kind of file this is, by what was said or by its name; text if neither tells."""
    if layout.kind is not None:
        if layout.kind not in KINDS.values():
            raise RegardError(
                f"{layout.kind!r} is not a kind of file; there are {', '.join(dict.fromkeys(KINDS.values()))}."
            )
        return layout.kind
    ending = path.suffix.lower().lstrip(".")
    if ending in OTHERS:
        raise RegardError(
            f"{path}: a .{ending} is not translated as such; there are {', '.join(dict.fromkeys(KINDS.values()))}. "
            "Convert it, or have it read line by line with --kind text."
        )
    return KINDS.get(ending, "text")


def read_document(content: bytes, name: str, kind: str, layout: Layout) -> Document:
    """A file's content, read. Raises RegardError with one sentence that names the file where it is wrong."""
    if kind == "text":
        from regard.documents.text import PlainText

        return PlainText(content, name, layout)
    if kind in ("tsv", "csv", "jsonl"):
        from regard.documents.tables import Table

        return Table(content, name, kind, layout)
    if kind == "po":
        from regard.documents.po import Catalogue

        return Catalogue(content, name, layout)
    from regard.documents.xliff_tmx import Tmx, Xliff

    return Tmx(content, name, layout) if kind == "tmx" else Xliff(content, name, layout)


def decoded(content: bytes, name: str, *, lenient: bool = False) -> tuple[str, bytes]:
    """Text of UTF-8, and the mark it began with. Raises RegardError that says in which line it is none.

    `lenient`: bytes that are none become lone surrogates, which a translator refuses and an output gets back, unless
    half of all lines have some: then the file is wrong, not a line.
    """
    mark = b"\xef\xbb\xbf" if content.startswith(b"\xef\xbb\xbf") else b""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise RegardError(f"{name}: this is UTF-16; convert it to UTF-8: iconv -f utf-16 -t utf-8.")
    if content[:2] == b"\x1f\x8b":
        raise RegardError(f"{name}: this is gzipped; unpack it first.")
    try:
        return content[len(mark) :].decode("utf-8"), mark
    except UnicodeDecodeError as error:
        text = content[len(mark) :].decode("utf-8", "surrogateescape")
        lines = text.split("\n")
        if lenient and 2 * sum(LONE_SURROGATE.search(line) is not None for line in lines) <= len(lines):
            return text, mark
        line = content[: error.start + len(mark)].count(b"\n") + 1
        raise RegardError(
            f"{name}, line {line:,}: this is not UTF-8; convert the file first, as in: iconv -f latin1 -t utf-8."
        ) from None
