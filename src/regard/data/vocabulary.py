"""What encodes sources and targets: tokenizers, media and labels."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, cast

from regard.data.media.base import MediaProcessor
from regard.data.settings import SubwordSettings
from regard.data.targets.base import Target
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.errors import RegardError

SourceProcessor = SubwordTokenizer | MediaProcessor
SourceInput = Any  # one encoded source: tokens with special tokens, or an array


class Vocabulary(Target, Protocol):
    """A target of tokens: a subword tokenizer, or labels. has_eos: the end-of-sequence token ends each target."""

    has_eos: bool

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


def has_tokens(target: Target) -> bool:
    """Whether a target is of tokens, and so a vocabulary."""
    return hasattr(target, "encode")


def as_vocabulary(target: Target) -> Vocabulary:
    """A target of tokens. Raises RegardError for a target of another type, such as the scale of series."""
    if has_tokens(target):
        return cast(Vocabulary, target)
    raise RegardError("this model predicts values, not tokens; there is no vocabulary.")
