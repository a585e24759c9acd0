"""The images or recordings of a corpus, each stored once even if several examples have it."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from regard.data.example import Example
from regard.data.input_validation import RejectedExamples
from regard.data.media.base import MediaProcessor
from regard.data.ragged_array import RaggedWriter
from regard.errors import RegardError


def resolve_media_path(name: str, file: str, media: Path | None) -> Path:
    """The path of a file that a table names. Raises RegardError if it is outside `media`, or the table's folder."""
    folder = media if media is not None else Path(file).parent
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise RegardError(f"it lies outside {folder}")
    return path


class MediaWriter:
    """Writes arrays into `path`, and the index of each example's array into `path.rows.npy`."""

    def __init__(self, path: Path, medium: MediaProcessor, media: Path | None, rejected: RejectedExamples) -> None:
        self._path, self._medium, self._media, self._rejected = path, medium, media, rejected
        self._writer = RaggedWriter(path, medium.dtype)
        self._known: dict[Path, int | str] = {}  # the row of each file, or why it cannot be read
        self._rows: list[int] = []
        self._stored: list[int] = []  # hashes of the arrays

    def readable_examples(self, examples: Iterator[Example]) -> Iterator[Example]:
        """The examples whose source can be read; the others are rejected."""
        for example in examples:
            row = self._row(example)
            if isinstance(row, str):
                self._rejected.add(example, row)
                if not self._rows and self._rejected.total > 20 and len(self._rejected.counts) == 1:
                    raise RegardError(
                        f"{example.file}: not one of its first sources can be read; the last is {example.source!r}: "
                        f"{row}. Name the folder where they are with --media."
                    )
                continue
            self._rows.append(row)
            yield replace(example, content=None)

    def _row(self, example: Example) -> int | str:
        if example.content is not None:
            return self._stored_row(example.content)
        try:
            path = resolve_media_path(example.source, example.file, self._media)
        except RegardError as error:
            return str(error)
        if path not in self._known:
            try:
                self._known[path] = self._stored_row(path)
            except RegardError as error:
                # Without the file name, so that equal reasons are counted together.
                self._known[path] = str(error).removeprefix(f"{path}: ").rstrip(".")
        return self._known[path]

    def _stored_row(self, media: object) -> int:
        array = self._medium.read(media)
        content = array.tobytes()
        self._writer.append(array.reshape(-1))
        self._stored.append(int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little"))
        return len(self._stored) - 1

    @property
    def hashes(self) -> NDArray[np.uint64]:
        """A hash of each example's array: two files with the same image are one source."""
        return np.array(self._stored, np.uint64)[self._rows]

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)
        if error is None:
            np.save(self._path.with_name(self._path.name + ".rows.npy"), np.array(self._rows, np.int64))
