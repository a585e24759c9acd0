"""Arrays of sequences of different lengths, in two files, memory-mapped: as large as the disk, not as the memory."""

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 1 << 20  # elements gathered before they are written


def _files(path: Path) -> tuple[Path, Path]:
    return path.with_name(path.name + ".ends"), path.with_name(path.name + ".bin")


class Ragged:
    """`ragged[i]` is the i-th sequence. `name.bin` holds all elements, `name.ends` where each sequence ends."""

    def __init__(self, path: Path, kind: type[np.generic]) -> None:
        ends_file, bin_file = _files(path)
        empty = not bin_file.stat().st_size
        self.values: NDArray[np.generic] = np.zeros(0, kind) if empty else np.memmap(bin_file, kind, mode="r")
        ends = np.memmap(ends_file, np.int64, mode="r") if ends_file.stat().st_size else np.zeros(0, np.int64)
        self.ends: NDArray[np.int64] = ends

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> NDArray[np.generic]:
        return self.values[int(self.ends[index - 1]) if index else 0 : int(self.ends[index])]

    @property
    def lengths(self) -> NDArray[np.int32]:
        """How long each sequence is."""
        return np.diff(self.ends, prepend=0).astype(np.int32)


class RaggedWriter:
    """Writes what `Ragged` reads, piece by piece."""

    def __init__(self, path: Path, kind: type[np.generic]) -> None:
        self._kind, self._at = kind, 0
        ends_file, bin_file = _files(path)
        self._bin, self._ends = bin_file.open("wb"), ends_file.open("wb")
        self._pieces: list[NDArray[np.generic]] = []
        self._lengths: list[int] = []
        self._waiting = 0

    def append(self, sequence: Iterable[int] | NDArray[np.generic] | bytes) -> None:
        """One sequence more."""
        piece = np.frombuffer(sequence, np.uint8) if isinstance(sequence, bytes) else np.asarray(sequence, self._kind)
        self._pieces.append(piece)
        self._lengths.append(len(piece))
        self._waiting += len(piece) + 1
        if self._waiting > AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered."""
        if not self._lengths:
            return
        ends = self._at + np.cumsum(self._lengths, dtype=np.int64)
        np.concatenate(self._pieces).astype(self._kind, copy=False).tofile(self._bin)
        ends.tofile(self._ends)
        self._at = int(ends[-1])
        self._pieces, self._lengths, self._waiting = [], [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.flush()
        self._bin.close()
        self._ends.close()


def text_of(raw: NDArray[np.generic]) -> str:
    """Bytes of UTF-8 as text."""
    return raw.tobytes().decode("utf-8")
