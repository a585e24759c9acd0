"""Pairs of source and target on disk, memory-mapped."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.media import DecodedMedia, Medium
from regard.data.ragged_array import Ragged, decode_text
from regard.data.segments import add_special_tokens
from regard.data.vocabulary import Given
from regard.models.settings import SourceSettings, TextSource
from regard.special_tokens import BEGIN, END, PAD


@dataclass(frozen=True)
class PairDataset:
    """Source and target by number: their tokens and their texts."""

    source: Ragged  # tokens, or the elements of pictures and recordings
    target: Ragged
    source_text: Ragged
    target_text: Ragged
    index: NDArray[np.int64]  # which of the stored examples these are
    linked: Ragged | None = None  # aligned source and target words, in turns
    medium: Medium | None = None  # the modality of the sources, if it is not text
    rows: NDArray[np.int64] | None = None  # which of the stored sources each of the stored examples has
    has_eos: bool = True  # whether targets end with the end-of-sequence token
    reads: SourceSettings = field(default_factory=TextSource)
    firsts: Ragged | None = None  # of texts whose words are tagged, the place of each word's first token

    def __len__(self) -> int:
        return len(self.index)

    @property
    def source_lengths(self) -> NDArray[np.int32]:
        """In tokens, the end's mark included; of what is no text, in places about."""
        if self.medium is not None and self.rows is not None:
            return self.medium.position_counts(self.source.lengths[self.rows[self.index]])
        return self.source.lengths[self.index] + len(add_special_tokens([], self.reads))

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        """In tokens, the end's mark included."""
        return self.target.lengths[self.index] + self.has_eos

    def origin(self, number: int) -> int:
        """Which of the stored examples this is."""
        return int(self.index[number])

    def text(self, number: int) -> str:
        """The source as it was read."""
        return self.texts(number)[0]

    def texts(self, number: int) -> tuple[str, str]:
        """Source and target as they were read."""
        at = int(self.index[number])
        return decode_text(self.source_text[at]), decode_text(self.target_text[at])

    def tokens(self, number: int) -> tuple[Given, list[int]]:
        """What the model reads and what it says: tokens, each with its end, or an array."""
        at = int(self.index[number])
        target = [*map(int, self.target[at]), *([END] if self.has_eos else [])]
        if self.medium is not None and self.rows is not None:
            return self.medium.reshape(self.source[int(self.rows[at])]), target
        return add_special_tokens([*map(int, self.source[at])], self.reads), target

    def predictor_input(self, number: int) -> Any:
        """The source as a predictor takes it."""
        source = self.text(number)
        return source if self.medium is None else DecodedMedia(self.tokens(number)[0], source)

    def position_labels(self, number: int) -> list[int]:
        """The label at each position of the source: a tag where a word begins, PAD elsewhere."""
        assert self.firsts is not None
        source, tags = self.tokens(number)
        before = int(source[0] == BEGIN)
        labels = [PAD] * len(source)
        for place, tag in zip(self.firsts[int(self.index[number])].tolist(), tags, strict=True):
            labels[place + before] = tag
        return labels

    def links(self, number: int) -> NDArray[np.int64]:
        """[N, 2]: source and target words that belong together, from 0."""
        found = np.zeros(0) if self.linked is None else self.linked[int(self.index[number])]
        return found.astype(np.int64).reshape(-1, 2)
