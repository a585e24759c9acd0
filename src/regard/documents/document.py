"""The interface of document formats, and how the format of a file is detected.

Imports no format until one is needed, and no pydantic, so that the command line can list the formats in its help.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from regard.errors import RegardError
from regard.registry import Registry

if TYPE_CHECKING:
    from regard.data.settings import Column


@dataclass(frozen=True)
class DocumentLayout:
    """Options about a file: languages, columns, paragraphs, format."""

    source_language: str | None = None
    target_language: str | None = None
    source_column: "Column | None" = None  # of a table
    question_column: "Column | None" = None  # of a table, for models that answer questions about the source
    target_column: str = "translation"  # of a table: the column or field that gets the translations
    paragraphs: bool = False  # of a text: each line is a paragraph of several sentences
    format: str | None = None  # if not that of the file's suffix


class Document(ABC):
    """A file that was read. A new format is a subclass in one file, registered in DOCUMENTS.

    The constructor raises RegardError, with one sentence that names the file, where the content is wrong.
    """

    suffixes: ClassVar[tuple[str, ...]]  # of file names, in lower case, with the dot
    texts: Sequence[str]  # to translate, in order
    notes: Sequence[str] = ()  # on parts that could not be read and stay as they are

    @abstractmethod
    def __init__(self, content: bytes, name: str, layout: DocumentLayout) -> None:
        """Parse a file's content. name: for errors."""

    @abstractmethod
    def write(self, translations: Sequence[str | None]) -> bytes:
        """The whole file with a translation for each text; None where there is none."""


DOCUMENTS: Registry[type[Document]] = Registry("document", "regard.documents.formats", deferred=True)

# Formats whose lines are not plain text: translating them line by line would break them.
STRUCTURED_SUFFIXES = frozenset(
    """.docx .xlsx .pptx .odt .ods .odp .pdf .rtf .epub .doc .xls .ppt .zip .png .jpg .json .html .htm .xhtml .xml .srt
    .vtt .yaml .yml .toml .ini .properties .strings .resx .arb""".split()  # noqa: SIM905
)


def known_suffixes() -> Iterator[tuple[str, str]]:
    """Every known suffix with its format. Built-in formats come first, so that no plugin replaces one."""
    for name in DOCUMENTS:
        for suffix in DOCUMENTS.get(name).suffixes:
            yield suffix, name


def document_format(path: PurePath, layout: DocumentLayout) -> str:
    """The name of a file's format: as the layout says, or by the file's suffix, or text. Raises RegardError."""
    if layout.format is not None:
        if layout.format not in DOCUMENTS:
            raise RegardError(f"{layout.format!r} is not a file format; there are {', '.join(DOCUMENTS)}.")
        return DOCUMENTS.canonical(layout.format)
    suffix = path.suffix.lower()
    name = next((name for each, name in known_suffixes() if each == suffix), None)
    if name is None and suffix in STRUCTURED_SUFFIXES:
        raise RegardError(
            f"{path}: a {suffix} is not translated as such; there are {', '.join(DOCUMENTS)}. Convert it, or have it "
            "read line by line with --format text."
        )
    return name or "text"


def has_known_suffix(path: PurePath) -> bool:
    """Whether a name has the suffix of a document format."""
    return any(suffix == path.suffix.lower() for suffix, _ in known_suffixes())


def read_document(content: bytes, name: str, format_name: str, layout: DocumentLayout) -> Document:
    """A file's content, parsed. Raises RegardError with one sentence that names the file where it is wrong."""
    return DOCUMENTS.get(format_name)(content, name, layout)
