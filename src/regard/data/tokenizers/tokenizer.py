"""What every tokenizer of text provides."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from regard.data.settings import SubwordSettings

SPACE = "▁"  # the first character of a piece that begins a word, as sentencepiece writes it


class SubwordTokenizer(ABC):
    """Text to tokens and back, with regard's special tokens first in the vocabulary."""

    has_eos: bool = True  # the end-of-sequence token ends each text
    target_file: str = "target.subwords"  # the file of a target tokenizer in a run
    keeps_whitespace: bool = False  # the space before a word is part of its token, and repeated spaces are kept
    model: bytes  # the content of the tokenizer's file

    @abstractmethod
    def __len__(self) -> int:
        """The size of the vocabulary."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text, without begin and end tokens."""

    @abstractmethod
    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """Text of each sequence; padding, begin and end tokens are left out."""

    @abstractmethod
    def offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Tokens of a text, and the characters each spans, without the space before a word. Raises RegardError."""

    @abstractmethod
    def sample(self, texts: Sequence[str], settings: SubwordSettings, key: int) -> list[list[int]]:
        """A random segmentation of each text, a pure function of `key`; `encode` where there is only one."""

    def check(self, text: str) -> None:  # noqa: B027
        """Every text can be encoded: nothing is unknown."""

    @abstractmethod
    def token(self, piece: str) -> int | None:
        """The token of a piece, if there is one."""

    @abstractmethod
    def pieces(self, tokens: Iterable[int]) -> list[str]:
        """The piece of each token, with ▁ where a word begins."""

    @cached_property
    def word_starts(self) -> NDArray[np.bool_]:
        """Which tokens begin a word."""
        return np.array([piece.startswith(SPACE) for piece in self.pieces(range(len(self)))])
