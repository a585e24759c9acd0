"""Input files: opened, decompressed and decoded. Each error is one sentence."""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import IO, Any

from regard.errors import RegardError

MAX_INVALID_LINES = 20  # if there are more, and more than one line in ten, the whole file is refused
GZIP_MAGIC = b"\x1f\x8b"
UTF16_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF8_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class DamagedFileError(RegardError):
    """A compressed file that cannot be decompressed."""


def suffix_of(path: PurePath) -> str:
    """The suffix that tells a file's format, in lower case, `.gz` left out: `.tsv` for pairs.TSV.gz."""
    return "." + path.name.lower().removesuffix(".gz").rpartition(".")[2]


def open_file(path: Path, *, allow_utf16: bool = False) -> IO[bytes]:
    """A file's bytes, decompressed if its name ends in .gz. Raises RegardError with one sentence.

    allow_utf16: for XML, which declares its encoding itself.
    """
    try:
        if path.is_dir():
            raise RegardError(f"{path}: this is a folder; name a file in it.")
        if path.exists() and not path.is_file():
            raise RegardError(
                f"{path}: this is a pipe or a device, which can be read once only; save it as a file first."
            )
        raw: IO[bytes] = path.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        raise RegardError(f"{path}: there is no such file.") from None
    except PermissionError:
        raise RegardError(f"{path}: it cannot be read; check its permissions.") from None
    if path.name.lower().endswith(".gz"):
        decompressed = io.BufferedReader(_GzipReader(path, raw))
        if not allow_utf16:
            _refuse_utf16(path, decompressed.peek(2))
        return decompressed
    start = raw.read(4)
    raw.seek(0)
    if start[:2] == GZIP_MAGIC:
        raise RegardError(f"{path}: this is gzipped; give it a name that ends in .gz.")
    if not allow_utf16:
        _refuse_utf16(path, start)
    return raw


def _refuse_utf16(path: Path, start: bytes) -> None:
    if start[:2] in UTF16_BYTE_ORDER_MARKS:
        raise RegardError(f"{path}: this is UTF-16; convert it to UTF-8: iconv -f utf-16 -t utf-8 {path} > new file.")


class _GzipReader(io.RawIOBase):
    """gzip whose errors name the file."""

    def __init__(self, path: Path, raw: IO[bytes]) -> None:
        self._path, self._file = path, gzip.GzipFile(fileobj=raw)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return self._file.readinto(buffer)
        except (EOFError, OSError, zlib.error):
            raise DamagedFileError(f"{self._path}: the gzip file is damaged or cut short; copy it again.") from None


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Each line's text, and a problem with it: "not UTF-8", or nothing."""
    invalid = 0
    first_invalid = 0
    number = 0
    with open_file(path) as file:
        for number, raw in enumerate(file, 1):
            line = raw.rstrip(b"\r\n")
            if number == 1:
                line = line.removeprefix(UTF8_BYTE_ORDER_MARK)
            try:
                yield line.decode("utf-8"), ""
            except UnicodeDecodeError:
                invalid += 1
                first_invalid = first_invalid or number
                if invalid > MAX_INVALID_LINES and invalid * 10 > number:
                    raise RegardError(_not_utf8(path, first_invalid)) from None
                yield line.decode("utf-8", "replace"), "not UTF-8"
    if invalid and invalid * 2 > number:
        raise RegardError(_not_utf8(path, first_invalid))


def _not_utf8(path: Path, line: int) -> str:
    return (
        f"{path}, line {line:,}: this is not UTF-8, and many other lines are not; convert the file first, as in: "
        f"iconv -f latin1 -t utf-8 {path} > new file."
    )
