"""What encodes sources and targets: tokenizers, media and labels."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from regard.data.media.base import MediaProcessor
from regard.data.settings import SubwordSettings
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.errors import RegardError

SourceProcessor = SubwordTokenizer | MediaProcessor
SourceInput = Any  # one encoded source: tokens with special tokens, or an array


class Vocabulary(Protocol):
    """What encodes and decodes targets: a subword tokenizer, or labels."""

    has_eos: bool  # whether the end-of-sequence token ends each target
    target_file: str  # its file name in a run

    @property
    def model(self) -> bytes:
        """The content of its file."""
        ...

    def __len__(self) -> int: ...
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text."""
        ...

    def sample(self, texts: Sequence[str], settings: SubwordSettings, key: int) -> list[list[int]]:
        """Tokens of each text, segmented at random as a function of `key`."""
        ...

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """Text of each sequence."""
        ...

    def token(self, piece: str) -> int | None:
        """The token of a piece, if there is one."""
        ...

    def pieces(self, tokens: Iterable[int]) -> list[str]:
        """The piece of each token."""
        ...

    def check(self, text: str) -> None:
        """Raise RegardError for a text that this vocabulary cannot encode, such as an unknown label."""
        ...


def text_tokenizer(side: SourceProcessor) -> SubwordTokenizer:
    """The tokenizer of a source side that is text. Raises RegardError for media."""
    if isinstance(side, SubwordTokenizer):
        return side
    raise RegardError(f"this model reads {side.plural_name}, not text; give it files of these.")
