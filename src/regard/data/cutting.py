"""Examples as they are stored while a corpus is made, and cut into tokens."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.door import SetAside
from regard.data.parts import by_words, encoded, room
from regard.data.placeholders import Protection
from regard.data.ragged import Ragged, RaggedWriter, text_of
from regard.data.readers import Example
from regard.data.settings import DataSettings
from regard.data.sides import Vocabulary
from regard.data.spans import example_of
from regard.data.subwords import Subwords
from regard.sources import Source, Text
from regard.tokens import UNKNOWN, shortened

CUT_AT_ONCE = 10_000

Report = Callable[[str, int, int | None], None]  # what is being done, how many are done, of how many if known


class Origins:
    """Where each stored example came from, in little memory."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.starts: list[int] = []  # the number of the first example of each file
        self.lines: NDArray[np.int64] = np.zeros(0, np.int64)

    def example(self, folder: Path, name: str, number: int) -> Example:
        file = self.files[int(np.searchsorted(self.starts, number, "right")) - 1]
        source, target = (
            text_of(Ragged(folder / f"{name}.{side}_text", np.uint8)[number]) for side in ("source", "target")
        )
        return Example(source, target, file, int(self.lines[number]))


class Texts:
    """Stored texts of both sides, as they are learnt from: with symbols in place of their placeholders."""

    def __init__(self, folder: Path, name: str, protection: Protection) -> None:
        self._sides = [Ragged(folder / f"{name}.{side}_text", np.uint8) for side in ("source", "target")]
        self._protection = protection

    def __len__(self) -> int:
        return len(self._sides[0])

    def raw(self, at: int) -> tuple[str, str]:
        """As they were read."""
        return text_of(self._sides[0][at]), text_of(self._sides[1][at])

    def side(self, at: int, side: str) -> str:
        """One of them, with symbols; as it was read, where the sides have not the same."""
        place = 0 if side == "source" else 1
        if not self._protection.uses_symbols:
            return text_of(self._sides[place][at])
        raw = self.raw(at)
        return (self._protection.protect_pair(*raw) or raw)[place]


def cut_sides(
    settings: DataSettings,
    source: Source,
    folder: Path,
    name: str,
    subwords: dict[str, Vocabulary],
    protection: Protection,
    origins: Origins,
    aside: SetAside,
    wanted: NDArray[np.bool_],
    report: Report,
    *,
    tagged: bool = False,
) -> NDArray[np.bool_]:
    """Write the tokens of all examples; False for those that are too long. Unwanted ones are stored empty. tagged:
    sources are cut word by word, and where each word begins is written, too."""
    fit = np.ones(len(origins.lines), bool)
    narrow = max(len(vocabulary) for vocabulary in subwords.values()) < 1 << 16
    if narrow:
        (folder / f"{name}.narrow").touch()
    kind = np.uint16 if narrow else np.int32
    texts = Texts(folder, name, protection)
    for side, vocabulary in subwords.items():
        reads = source if side == "source" else Text()
        most = room(reads, settings.longest)
        with (
            RaggedWriter(folder / f"{name}.{side}", kind) as writer,
            RaggedWriter(folder / f"{name}.firsts", np.int32)
            if tagged and side == "source"
            else contextlib.nullcontext() as firsts,
        ):
            for start in range(0, len(texts), CUT_AT_ONCE):
                some = range(start, min(start + CUT_AT_ONCE, len(texts)))
                read = [texts.side(at, side) if wanted[at] else "" for at in some]
                tokens = encoded(read, reads, vocabulary.encode)
                if firsts is not None:
                    assert isinstance(vocabulary, Subwords)
                    tokens, begins = by_words(read, vocabulary)
                    for places, sequence in zip(begins, tokens, strict=True):
                        firsts.append(places if len(sequence) <= most else [])
                for at, sequence in zip(some, tokens, strict=True):
                    if not vocabulary.ends and UNKNOWN in sequence and wanted[at]:
                        aside.put(origins.example(folder, name, at), "a label that training has not")
                        fit[at] = False
                    if side == "source" and settings.whole and not tagged:
                        sequence = shortened(sequence, most)  # noqa: PLW2901
                    if len(sequence) > most and not settings.text:
                        if fit[at]:
                            aside.put(origins.example(folder, name, at), f"over {settings.longest} tokens")
                        fit[at] = False
                        sequence = []  # noqa: PLW2901
                    writer.append(sequence)
                report(f"cutting the {side}", some.stop, len(texts))
    return fit


def cut_spans(
    settings: DataSettings,
    source: Source,
    folder: Path,
    name: str,
    subwords: dict[str, Vocabulary],
    protection: Protection,
    origins: Origins,
    aside: SetAside,
    wanted: NDArray[np.bool_],
    report: Report,
) -> NDArray[np.bool_]:
    """Write what is read of all examples and the places of their answers, counted from 1; False for those without."""
    reader = subwords["source"]
    assert isinstance(reader, Subwords)
    fit = wanted.copy()
    if len(reader) < 1 << 16:
        (folder / f"{name}.narrow").touch()
    kind = np.uint16 if len(reader) < 1 << 16 else np.int32
    texts = Texts(folder, name, protection)
    which = Ragged(folder / f"{name}.occurrences", np.int32)
    with RaggedWriter(folder / f"{name}.source", kind) as read, RaggedWriter(folder / f"{name}.target", kind) as said:
        for at in range(len(texts)):
            made = example_of(*texts.raw(at), int(which[at][0]), reader, source, settings.longest)
            if isinstance(made, str):
                aside.put(origins.example(folder, name, at), made)
                fit[at] = False
                made = [], (0, 0)
            read.append(made[0])
            said.append([place + 1 for place in made[1]])
            if at % CUT_AT_ONCE == 0:
                report("finding answers", at, len(texts))
    report("finding answers", len(texts), len(texts))
    return fit
