"""What a model reads and what it says: text in subwords, media, labels."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from regard.data.labels import Ends, Labels, Tags
from regard.data.media import Medium
from regard.data.settings import SubwordSettings
from regard.data.tokenizers import load_tokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.errors import RegardError
from regard.sources import Says

SourceSide = SubwordTokenizer | Medium
Given = Any  # one source as a model is given it: tokens with their end, or an array


class Vocabulary(Protocol):
    """What a model says: tokens that stand for text. Subwords, or labels."""

    ends: bool  # whether an end follows what is said

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


def in_text(side: SourceSide) -> SubwordTokenizer:
    """A side that reads text. Raises RegardError for another."""
    if isinstance(side, SubwordTokenizer):
        return side
    raise RegardError(f"this model reads {side.what}, not text; give it files of these.")


def target_file(folder: Path, says: Says) -> Path:
    """Where a folder has what its model says."""
    return folder / ("target.subwords" if says == "text" else "target.labels")


def load_target(folder: Path, says: Says) -> Vocabulary:
    """What a folder's model says. Raises RegardError for a file of another kind."""
    path = target_file(folder, says)
    if says == "text":
        return load_tokenizer(path)
    labels = Labels.load(path)
    kinds: dict[type[Labels], Says] = {Tags: "tags", Ends: "span", Labels: "label"}
    if kinds[type(labels)] != says:
        raise RegardError(f"{path}: what it has is said by a {kinds[type(labels)]} model, and this one is another.")
    return labels
