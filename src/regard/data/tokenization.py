"""Examples as they are stored while a corpus is prepared, and their tokens."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.example import Example
from regard.data.input_validation import RejectedExamples
from regard.data.placeholders import Protection
from regard.data.ragged_array import Ragged, RaggedWriter, decode_text
from regard.data.segments import encode_segments, encode_words, max_content_tokens
from regard.data.settings import DataSettings
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.data.vocabulary import Vocabulary
from regard.models.settings import SourceSettings, TextSource
from regard.special_tokens import UNKNOWN, shortened

REPORT_EVERY = 10_000

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


class StoredTexts:
    """Stored texts of both sides, as they are trained on: with symbols in place of their placeholders."""

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
class Tokenization:
    """How the stored examples of a corpus become tokens."""

    settings: DataSettings
    source: SourceSettings
    folder: Path
    vocabularies: dict[str, Vocabulary]
    protection: Protection
    rejected: RejectedExamples
    report: Report
    documents: bool  # which may be of any length

    def dtype(self, name: str) -> type[np.generic]:
        """Of the stored tokens, as narrow as the vocabularies allow."""
        narrow = max(map(len, self.vocabularies.values())) < 1 << 16
        if narrow:
            (self.folder / f"{name}.narrow").touch()
        return np.uint16 if narrow else np.int32

    def encode_side(
        self,
        name: str,
        side: str,
        origins: Origins,
        wanted: NDArray[np.bool_],
        fit: NDArray[np.bool_],
        *,
        by_word: bool = False,
    ) -> None:
        """Write the tokens of one side; what is too long, or has an unknown label, is no longer fit. Unwanted examples
        are stored empty. by_word: each word is tokenized by itself, and where each begins is stored, too."""
        vocabulary = self.vocabularies[side]
        reads = self.source if side == "source" else TextSource()
        limit = max_content_tokens(reads, self.settings.longest)
        truncates = side == "source" and self.settings.whole and not by_word
        texts = StoredTexts(self.folder, name, self.protection)
        firsts_file = RaggedWriter(self.folder / f"{name}.firsts", np.int32) if by_word else contextlib.nullcontext()
        with RaggedWriter(self.folder / f"{name}.{side}", self.dtype(name)) as writer, firsts_file as firsts:
            for start in range(0, len(texts), REPORT_EVERY):
                some = range(start, min(start + REPORT_EVERY, len(texts)))
                read = [texts.side(at, side) if wanted[at] else "" for at in some]
                if firsts is not None:
                    assert isinstance(vocabulary, SubwordTokenizer)
                    tokens, starts = encode_words(read, vocabulary)
                    for positions, sequence in zip(starts, tokens, strict=True):
                        firsts.append(positions if len(sequence) <= limit else [])
                else:
                    tokens = encode_segments(read, reads, vocabulary.encode)
                for at, sequence in zip(some, tokens, strict=True):
                    if not vocabulary.has_eos and UNKNOWN in sequence and wanted[at]:
                        self.rejected.add(origins.example(self.folder, name, at), "a label that training has not")
                        fit[at] = False
                    kept = shortened(sequence, limit) if truncates else sequence
                    if len(kept) > limit and not self.documents:
                        if fit[at]:
                            reason = f"over {self.settings.longest} tokens"
                            self.rejected.add(origins.example(self.folder, name, at), reason)
                        fit[at] = False
                        kept = []
                    writer.append(kept)
                self.report(f"tokenizing the {side}", some.stop, len(texts))
