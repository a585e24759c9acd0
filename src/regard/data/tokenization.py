"""Examples as they are stored while a corpus is made, and cut into tokens."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.answer_spans import example_of
from regard.data.example import Example
from regard.data.input_validation import RejectedExamples
from regard.data.placeholders import Protection
from regard.data.ragged_array import Ragged, RaggedWriter, decode_text
from regard.data.segments import by_words, encoded, room
from regard.data.settings import DataSettings
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.data.vocabulary import Vocabulary
from regard.sources import Says, Source, Text
from regard.special_tokens import UNKNOWN, shortened

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
            decode_text(Ragged(folder / f"{name}.{side}_text", np.uint8)[number]) for side in ("source", "target")
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
        return decode_text(self._sides[0][at]), decode_text(self._sides[1][at])

    def side(self, at: int, side: str) -> str:
        """One of them, with symbols; as it was read, where the sides have not the same."""
        place = 0 if side == "source" else 1
        if not self._protection.uses_symbols:
            return decode_text(self._sides[place][at])
        raw = self.raw(at)
        return (self._protection.protect_pair(*raw) or raw)[place]


@dataclass(frozen=True)
class Cutting:
    """How the stored examples of a corpus become tokens."""

    settings: DataSettings
    source: Source
    says: Says
    folder: Path
    subwords: dict[str, Vocabulary]
    protection: Protection
    aside: RejectedExamples
    report: Report

    def cut(self, name: str, origins: Origins, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Write the tokens of all examples of the training or the validation set; False for those that are set aside
        on the way. Unwanted ones are stored empty."""
        kind = np.uint16 if max(map(len, self.subwords.values())) < 1 << 16 else np.int32
        if kind is np.uint16:
            (self.folder / f"{name}.narrow").touch()
        if self.says == "span":
            return self._spans(name, origins, wanted, kind)
        fit = np.ones(len(origins.lines), bool)
        for side in self.subwords:
            self._side(name, side, origins, wanted, fit, kind)
        return fit

    def _side(
        self, name: str, side: str, origins: Origins, wanted: NDArray[np.bool_], fit: NDArray[np.bool_], kind: type
    ) -> None:
        """One side; what is too long, or has a label that training has not, is no longer fit. Sources whose words are
        tagged are cut word by word, and where each begins is written, too."""
        vocabulary = self.subwords[side]
        reads = self.source if side == "source" else Text()
        most = room(reads, self.settings.longest)
        tagged = self.says == "tags" and side == "source"
        shortens = side == "source" and self.settings.whole and not tagged
        texts = Texts(self.folder, name, self.protection)
        with (
            RaggedWriter(self.folder / f"{name}.{side}", kind) as writer,
            RaggedWriter(self.folder / f"{name}.firsts", np.int32) if tagged else contextlib.nullcontext() as firsts,
        ):
            for start in range(0, len(texts), CUT_AT_ONCE):
                some = range(start, min(start + CUT_AT_ONCE, len(texts)))
                read = [texts.side(at, side) if wanted[at] else "" for at in some]
                if firsts is not None:
                    assert isinstance(vocabulary, SubwordTokenizer)
                    tokens, begins = by_words(read, vocabulary)
                    for places, sequence in zip(begins, tokens, strict=True):
                        firsts.append(places if len(sequence) <= most else [])
                else:
                    tokens = encoded(read, reads, vocabulary.encode)
                for at, sequence in zip(some, tokens, strict=True):
                    if not vocabulary.ends and UNKNOWN in sequence and wanted[at]:
                        self.aside.add(origins.example(self.folder, name, at), "a label that training has not")
                        fit[at] = False
                    kept = shortened(sequence, most) if shortens else sequence
                    if len(kept) > most and not self.settings.text:
                        if fit[at]:
                            reason = f"over {self.settings.longest} tokens"
                            self.aside.add(origins.example(self.folder, name, at), reason)
                        fit[at] = False
                        kept = []
                    writer.append(kept)
                self.report(f"cutting the {side}", some.stop, len(texts))

    def _spans(self, name: str, origins: Origins, wanted: NDArray[np.bool_], kind: type) -> NDArray[np.bool_]:
        """What is read, and the places of its answer, counted from 1."""
        reader = self.subwords["source"]
        assert isinstance(reader, SubwordTokenizer)
        fit = wanted.copy()
        texts = Texts(self.folder, name, self.protection)
        which = Ragged(self.folder / f"{name}.occurrences", np.int32)
        with (
            RaggedWriter(self.folder / f"{name}.source", kind) as read,
            RaggedWriter(self.folder / f"{name}.target", kind) as said,
        ):
            for at in range(len(texts)):
                made = example_of(*texts.raw(at), int(which[at][0]), reader, self.source, self.settings.longest)
                if isinstance(made, str):
                    self.aside.add(origins.example(self.folder, name, at), made)
                    fit[at] = False
                    made = [], (0, 0)
                read.append(made[0])
                said.append([place + 1 for place in made[1]])
                if at % CUT_AT_ONCE == 0:
                    self.report("finding answers", at, len(texts))
        self.report("finding answers", len(texts), len(texts))
        return fit
