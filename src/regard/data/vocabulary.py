"""What a model reads and what it says: text in subwords, media, labels."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from regard.data.media import Medium
from regard.data.settings import SubwordSettings
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.errors import RegardError

SourceSide = SubwordTokenizer | Medium
Given = Any  # one source as a model is given it: tokens with their end, or an array


class Vocabulary(Protocol):
    """What a model says: tokens that stand for text. Subwords, or labels."""

    has_eos: bool  # whether the end-of-sequence token ends each target
    target_file: str  # where a run keeps it

    @property
    def model(self) -> bytes:
        """As a file's content."""
        ...

    def __len__(self) -> int: ...
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text."""
        ...

    def sample(self, texts: Sequence[str], settings: SubwordSettings, key: int) -> list[list[int]]:
        """The same, cut at random."""
        ...

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """Text of each sequence."""
        ...

    def token(self, piece: str) -> int | None:
        """The token that looks like this."""
        ...

    def pieces(self, tokens: Iterable[int]) -> list[str]:
        """What each token looks like."""
        ...

    def check(self, text: str) -> None:
        """Raise RegardError for a text that this vocabulary cannot encode, such as an unknown label."""
        ...


def in_text(side: SourceSide) -> SubwordTokenizer:
    """A side that reads text. Raises RegardError for another."""
    if isinstance(side, SubwordTokenizer):
        return side
    raise RegardError(f"this model reads {side.plural_name}, not text; give it files of these.")
