"""Tokenization of the texts that are stored while a corpus is prepared."""

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
from regard.special_tokens import UNK, truncate

REPORT_EVERY = 10_000

Report = Callable[[str, int, int | None], None]  # progress: the stage, how much is done, of how much if known


class Origins:
    """The file and line of each stored example, in little memory."""

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
    """Stored texts of sources and targets, with symbols in place of their placeholders."""

    def __init__(self, folder: Path, name: str, protection: Protection) -> None:
        self._columns = [Ragged(folder / f"{name}.{side}_text", np.uint8) for side in ("source", "target")]
        self._protection = protection

    def __len__(self) -> int:
        return len(self._columns[0])

    def raw(self, at: int) -> tuple[str, str]:
        """Source and target with their placeholders."""
        return decode_text(self._columns[0][at]), decode_text(self._columns[1][at])

    def side(self, at: int, side: str) -> str:
        """Source or target with symbols; with its placeholders if those of the other side differ."""
        column = 0 if side == "source" else 1
        if not self._protection.uses_symbols:
            return decode_text(self._columns[column][at])
        raw = self.raw(at)
        return (self._protection.protect_pair(*raw) or raw)[column]


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
    documents: bool  # whether examples are documents, which may be of any length

    def dtype(self, name: str) -> type[np.generic]:
        """The data type of stored tokens: 16 bits if the vocabularies are small enough."""
        narrow = max(map(len, self.vocabularies.values())) < 1 << 16
        if narrow:
            (self.folder / f"{name}.narrow").touch()
        return np.uint16 if narrow else np.int32

    def encode_side(
        self,
        name: str,
        side: str,
        origins: Origins,
        selected: NDArray[np.bool_],
        usable: NDArray[np.bool_],
        *,
        by_word: bool = False,
    ) -> None:
        """Write the tokens of one side; `usable` becomes False for examples that are too long or have an unknown label.

        Examples that are not selected are stored empty. by_word: each word is tokenized by itself, and the position of
        its first token is stored, too.
        """
        vocabulary = self.vocabularies[side]
        source = self.source if side == "source" else TextSource()
        limit = max_content_tokens(source, self.settings.max_tokens)
        truncates = side == "source" and self.settings.truncate and not by_word
        texts = StoredTexts(self.folder, name, self.protection)
        first_tokens_file = (
            RaggedWriter(self.folder / f"{name}.firsts", np.int32) if by_word else contextlib.nullcontext()
        )
        with (
            RaggedWriter(self.folder / f"{name}.{side}", self.dtype(name)) as writer,
            first_tokens_file as first_tokens,
        ):
            for start in range(0, len(texts), REPORT_EVERY):
                numbers = range(start, min(start + REPORT_EVERY, len(texts)))
                batch = [texts.side(at, side) if selected[at] else "" for at in numbers]
                if first_tokens is not None:
                    assert isinstance(vocabulary, SubwordTokenizer)
                    tokens, starts = encode_words(batch, vocabulary)
                    for positions, sequence in zip(starts, tokens, strict=True):
                        first_tokens.append(positions if len(sequence) <= limit else [])
                else:
                    tokens = encode_segments(batch, source, vocabulary.encode)
                for at, sequence in zip(numbers, tokens, strict=True):
                    if not vocabulary.has_eos and UNK in sequence and selected[at]:
                        self.rejected.add(origins.example(self.folder, name, at), "a label that training has not")
                        usable[at] = False
                    stored = truncate(sequence, limit) if truncates else sequence
                    if len(stored) > limit and not self.documents:
                        if usable[at]:
                            reason = f"over {self.settings.max_tokens} tokens"
                            self.rejected.add(origins.example(self.folder, name, at), reason)
                        usable[at] = False
                        stored = []
                    writer.append(stored)
                self.report(f"tokenizing the {side}", numbers.stop, len(texts))
