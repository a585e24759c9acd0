"""Readers of what people have: aligned text files, TSV, CSV, JSONL, gettext PO, TMX, XLIFF; gzipped or not.

Each yields examples with the place they came from. A file that is wrong as a whole stops with one sentence; what is
wrong with a single example is said in its `wrong`, and the door sets it aside.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from regard.data.settings import Column
from regard.errors import RegardError

PIECE = 10_000  # characters of a document that are one example, at most
TOO_MANY_BAD_LINES = 20  # and more than one line in ten: then the file, not the line, is wrong


@dataclass(frozen=True)
class Example:
    """A pair and where it came from; `wrong` says what is the matter with it, if anything is known already."""

    source: str
    target: str
    file: str
    line: int
    wrong: str = ""
    links: tuple[tuple[int, int], ...] = ()  # of source and target words, from 0, if any are known
    content: Any = None  # of a picture that has no file of its own
    occurrence: int = 0  # of a target that stands in its source: which time, from 0


@dataclass(frozen=True)
class Layout:
    """Where the two sides are in a file that has both."""

    source_language: str | None = None
    target_language: str | None = None
    source_column: Column | None = None
    target_column: Column | None = None
    question_column: Column | None = None  # put after the source, with a mark between


def read_aligned(source: Path, target: Path) -> Iterator[Example]:
    """Two text files, line by line. Raises RegardError if one is longer than the other."""
    if "idx3-ubyte" in source.name or "idx1-ubyte" in target.name:
        from regard.data.formats.image_arrays import read_idx

        yield from read_idx(source, _opened(source, wide=True), target, _opened(target, wide=True))
        return
    sides = lines_of(source), lines_of(target)
    number = 0
    while True:
        pair = [next(side, None) for side in sides]
        number += 1
        first, second = pair
        if first is None and second is None:
            return
        if first is None or second is None:
            counts = [
                number - 1 if line is None else number + sum(1 for _ in side)
                for line, side in zip(pair, sides, strict=True)
            ]
            short, long = (source, target) if first is None else (target, source)
            raise RegardError(
                f"{source} has {counts[0]:,} lines and {target} {counts[1]:,}: line {number:,} of {long} has no "
                f"partner in {short}; the two files must have the same sentences in the same order."
            )
        yield Example(first[0], second[0], str(source), number, first[1] or second[1])


def read_documents(path: Path) -> Iterator[Example]:
    """A file of plain text: documents with blank lines between or, if it has none, a document a line. Of JSON lines
    each has its document as `text`. Long documents come in pieces, cut between words. Both sides are the text."""
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".tsv", ".tab", ".csv")):
        raise RegardError(f"{path}: this is a table, and plain text is wanted: a text file, or JSON lines with text.")
    if name.endswith((".jsonl", ".ndjson")):
        from regard.data.formats.tables import read_json_lines

        for example in read_json_lines(path, Layout(source_column="text", target_column="text")):
            for piece in _pieces(example.source):
                yield replace(example, source=piece, target=piece)
        return
    apart = any(not line.strip() for line, _ in lines_of(path))
    gathered: list[str] = []
    first, wrong, size = 1, "", 0
    for number, (line, flaw) in enumerate(lines_of(path), 1):
        if gathered and (not apart or not line.strip() or size + len(line) > PIECE):
            for piece in _pieces(" ".join(gathered)):
                yield Example(piece, piece, str(path), first, wrong)
            gathered, wrong, size = [], "", 0
        if line.strip():
            first = first if gathered else number
            gathered.append(line.strip())
            wrong, size = wrong or flaw, size + len(line) + 1
    for piece in _pieces(" ".join(gathered)):
        yield Example(piece, piece, str(path), first, wrong)


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces of PIECE characters at most, cut between words where there are any."""
    while len(text) > PIECE:
        cut = text.rfind(" ", 1, PIECE) + 1 or PIECE
        yield text[:cut].strip()
        text = text[cut:]
    if text.strip():
        yield text.strip()


def read_pairs(path: Path, layout: Layout) -> Iterator[Example]:
    """A file with both sides; its format is told by its name, `.gz` apart."""
    if path.is_dir():
        from regard.data.formats.image_arrays import read_folder

        return read_folder(path)
    name = path.name.lower().removesuffix(".gz")
    suffix = name.rpartition(".")[2]
    if suffix in ("tsv", "tab", "csv", "jsonl", "ndjson"):
        from regard.data.formats.tables import read_json_lines, read_table

        return read_json_lines(path, layout) if suffix in ("jsonl", "ndjson") else read_table(path, layout)
    if suffix in ("conll", "bio", "iob", "iob2"):
        return _read_tagged(path)
    if suffix == "json":
        from regard.data.formats.squad import read_squad

        return read_squad(path, _opened(path))
    if suffix in ("po", "pot"):
        from regard.data.formats.catalogs import read_po

        return read_po(path, _opened(path))
    if suffix in ("tmx", "xlf", "xliff"):
        from regard.data.formats.catalogs import read_tmx, read_xliff

        if suffix == "tmx":
            return read_tmx(path, _opened(path, wide=True), layout)
        return read_xliff(path, _opened(path, wide=True), layout)
    if path.exists():
        _opened(path).close()  # a folder or a device is told as such
    raise RegardError(
        f"{path}: this kind of file is not known; there are .tsv, .csv, .jsonl, .json (SQuAD's), .conll, .po, .tmx "
        f"and .xlf, each also with .gz. Two text files side by side are given as --source and --target, plain text "
        f"without pairs with --task language or --task mask."
    )


def _read_tagged(path: Path) -> Iterator[Example]:
    """A word a line, its tag last, a blank line after each sentence, as the CoNLL tasks have it."""
    words: list[str] = []
    tags: list[str] = []
    first, wrong = 1, ""
    for number, (line, flaw) in enumerate(lines_of(path), 1):
        columns = line.split()
        if columns and columns[0] != "-DOCSTART-":
            first = first if words else number
            words.append(columns[0])
            tags.append(columns[-1])
            wrong = wrong or flaw or ("" if len(columns) > 1 else "a word without a tag")
        elif words:
            yield Example(" ".join(words), " ".join(tags), str(path), first, wrong)
            words, tags, wrong = [], [], ""
    if words:
        yield Example(" ".join(words), " ".join(tags), str(path), first, wrong)


def _opened(path: Path, *, wide: bool = False) -> IO[bytes]:
    """The file's bytes, unpacked if its name ends in .gz. Raises RegardError with one sentence.

    `wide`: UTF-16 will do; XML says itself how it is written.
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
        unpacked = _Unpacked(path, raw)
        if not wide:
            _check_wide(path, unpacked.peek(2))
        return unpacked
    start = raw.read(4)
    raw.seek(0)
    if start[:2] == b"\x1f\x8b":
        raise RegardError(f"{path}: this is gzipped; give it a name that ends in .gz.")
    if not wide:
        _check_wide(path, start)
    return raw


def _check_wide(path: Path, start: bytes) -> None:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise RegardError(f"{path}: this is UTF-16; convert it to UTF-8: iconv -f utf-16 -t utf-8 {path} > new file.")


class DamagedError(RegardError):
    """A file that is broken below its format."""


class _Unpacked(io.BufferedReader):
    """gzip whose damage is a sentence."""

    def __init__(self, path: Path, raw: IO[bytes]) -> None:
        self._path = path
        super().__init__(_Careful(path, raw))


class _Careful(io.RawIOBase):
    def __init__(self, path: Path, raw: IO[bytes]) -> None:
        self._path, self._file = path, gzip.GzipFile(fileobj=raw)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return self._file.readinto(buffer)
        except (EOFError, OSError, zlib.error):
            raise DamagedError(f"{self._path}: the gzip file is damaged or cut short; copy it again.") from None


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """Each line's text, and what is wrong with it, if anything: only bytes that are not UTF-8 are noticed here."""
    bad = 0
    first_bad = 0
    number = 0
    with _opened(path) as file:
        for number, raw in enumerate(file, 1):
            line = raw.rstrip(b"\r\n")
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            try:
                yield line.decode("utf-8"), ""
            except UnicodeDecodeError:
                bad += 1
                first_bad = first_bad or number
                if bad > TOO_MANY_BAD_LINES and bad * 10 > number:
                    raise RegardError(_not_utf8(path, first_bad)) from None
                yield line.decode("utf-8", "replace"), "not UTF-8"
    if bad and bad * 2 > number:
        raise RegardError(_not_utf8(path, first_bad))


def _not_utf8(path: Path, line: int) -> str:
    return (
        f"{path}, line {line:,}: this is not UTF-8, and many other lines are not; convert the file first, as in: "
        f"iconv -f latin1 -t utf-8 {path} > new file."
    )
