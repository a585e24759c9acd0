"""Readers of training data, one for each file format, found by a file's suffix.

A format is one module in `formats/`. A file that is wrong as a whole raises RegardError; a single example that is wrong
is yielded with its `problem`, and input validation rejects it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from regard.data.example import Example, Layout
from regard.data.input_files import open_file, suffix_of
from regard.errors import RegardError
from regard.registry import Registry


@dataclass(frozen=True)
class TablePreview:
    """The input of column detection: the field names of the first record, or the first rows of a delimited file."""

    fields: list[str] | None = None
    rows: list[list[str]] | None = None

    @property
    def first_row(self) -> list[str]:
        """Field names, or the cells of the first row, which may be column names."""
        return self.fields if self.fields is not None else [cell.strip() for cell in (self.rows or [[]])[0]]


class Reader(ABC):
    """One file format. A new one is a subclass in one file, registered in READERS."""

    suffixes: ClassVar[tuple[str, ...]] = ()  # in lower case, with the dot
    two_files: ClassVar[bool] = False  # whether sources and targets are in a file each, instead of both in one

    @classmethod
    def matches(cls, path: Path) -> bool:
        """Whether this reader is for this file."""
        return suffix_of(path) in cls.suffixes

    @abstractmethod
    def read(self, path: Path, layout: Layout) -> Iterator[Example]:
        """The examples of a file that has both sources and targets."""

    def read_two_files(self, source: Path, target: Path) -> Iterator[Example]:
        """The examples of a file of sources and one of targets; of formats with `two_files`."""
        raise NotImplementedError

    def read_documents(self, path: Path) -> Iterator[Example]:
        """Plain text to train a language model on; source and target are the same. As lines of text by default."""
        return READERS.get("text")().read_documents(path)

    def preview(self, path: Path) -> TablePreview | None:
        """The first rows, of a format that has columns or fields."""
        return None


READERS: Registry[type[Reader]] = Registry("reader", "regard.data.formats")


def reader_for(path: Path) -> Reader | None:
    """The reader of a file or a folder, by its name. Plugins come last, so that none replaces a built-in one."""
    for name in READERS.names():
        reader = READERS.get(name)
        if reader.matches(path):
            return reader()
    return None


def read_pairs(path: Path, layout: Layout) -> Iterator[Example]:
    """A file with sources and targets. Raises RegardError if its format is unknown."""
    reader = reader_for(path)
    if reader is None or reader.two_files:
        if path.exists():
            open_file(path).close()  # a folder or a device gets an error of its own
        raise RegardError(
            f"{path}: this kind of file is not known; there are {_known_suffixes()}, each also with .gz. Two text "
            f"files side by side are given as --source and --target, plain text without pairs with --task causal_lm or "
            f"--task masked_lm."
        )
    return reader.read(path, layout)


def read_aligned(source: Path, target: Path) -> Iterator[Example]:
    """A file of sources and a file of targets, in the same order. Raises RegardError if one is longer."""
    readers = (reader_for(path) for path in (source, target))
    reader = next((each for each in readers if each is not None and each.two_files), None)
    return (reader or READERS.get("text")()).read_two_files(source, target)


def read_documents(path: Path) -> Iterator[Example]:
    """A file of plain text, to train a language model on."""
    return (reader_for(path) or READERS.get("text")()).read_documents(path)


def preview_table(path: Path) -> TablePreview | None:
    """The first rows of a table; None for a file of another kind."""
    reader = reader_for(path)
    return reader.preview(path) if reader is not None else None


def _known_suffixes() -> str:
    """The suffixes of files with both sides, and the format's name where it is not a suffix."""
    return ", ".join(
        ", ".join(reader.suffixes) + ("" if f".{name}" in reader.suffixes else f" ({name})")
        for name, reader in READERS.items()
        if reader.suffixes and not reader.two_files
    )
