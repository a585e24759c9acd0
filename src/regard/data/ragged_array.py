"""Arrays of sequences of different lengths, in two memory-mapped files, so that they may be larger than memory."""

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

BUFFER_ELEMENTS = 1 << 20  # gathered before they are written


def _files(path: Path) -> tuple[Path, Path]:
    return path.with_name(path.name + ".ends"), path.with_name(path.name + ".bin")


class Ragged:
    """`ragged[i]` is the i-th sequence. `name.bin` holds all elements, `name.ends` where each sequence ends."""

    def __init__(self, path: Path, dtype: type[np.generic]) -> None:
        ends_file, bin_file = _files(path)
        empty = not bin_file.stat().st_size
        self.values: NDArray[np.generic] = np.zeros(0, dtype) if empty else np.memmap(bin_file, dtype, mode="r")
        ends = np.memmap(ends_file, np.int64, mode="r") if ends_file.stat().st_size else np.zeros(0, np.int64)
        self.ends: NDArray[np.int64] = ends

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> NDArray[np.generic]:
        return self.values[int(self.ends[index - 1]) if index else 0 : int(self.ends[index])]

    @property
    def lengths(self) -> NDArray[np.int32]:
        """The length of each sequence."""
        return np.diff(self.ends, prepend=0).astype(np.int32)


class RaggedWriter:
    """Writes the files that `Ragged` reads."""

    def __init__(self, path: Path, dtype: type[np.generic]) -> None:
        self._dtype, self._at = dtype, 0
        ends_file, bin_file = _files(path)
        self._bin, self._ends = bin_file.open("wb"), ends_file.open("wb")
        self._pieces: list[NDArray[np.generic]] = []
        self._lengths: list[int] = []
        self._buffered = 0

    def append(self, sequence: Iterable[int] | NDArray[np.generic] | bytes) -> None:
        """Add a sequence."""
        piece = np.frombuffer(sequence, np.uint8) if isinstance(sequence, bytes) else np.asarray(sequence, self._dtype)
        self._pieces.append(piece)
        self._lengths.append(len(piece))
        self._buffered += len(piece) + 1
        if self._buffered > BUFFER_ELEMENTS:
            self.flush()

    def flush(self) -> None:
        """Write the buffer."""
        if not self._lengths:
            return
        ends = self._at + np.cumsum(self._lengths, dtype=np.int64)
        np.concatenate(self._pieces).astype(self._dtype, copy=False).tofile(self._bin)
        ends.tofile(self._ends)
        self._at = int(ends[-1])
        self._pieces, self._lengths, self._buffered = [], [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.flush()
        self._bin.close()
        self._ends.close()


def decode_text(raw: NDArray[np.generic]) -> str:
    """UTF-8 bytes as text."""
    return raw.tobytes().decode("utf-8")
