"""Pairs of source and target on disk, memory-mapped."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.media.base import DecodedMedia, MediaProcessor
from regard.data.ragged_array import Ragged, decode_text
from regard.data.segments import add_special_tokens
from regard.data.vocabulary import SourceInput
from regard.models.settings import SourceSettings, TextSource
from regard.special_tokens import BOS, EOS, PAD


@dataclass(frozen=True)
class PairDataset:
    """Sources and targets by number: their tokens and their texts."""

    source: Ragged  # tokens, or flat arrays of images and recordings
    target: Ragged
    source_text: Ragged
    target_text: Ragged
    index: NDArray[np.int64]  # [N]: the stored example of each number
    word_links: Ragged | None = None  # of each stored example its word links [N, 2], flat
    medium: MediaProcessor | None = None  # of sources that are not text
    source_rows: NDArray[np.int64] | None = None  # of media: the stored array of each stored example
    has_eos: bool = True  # whether targets end with the end-of-sequence token
    source_settings: SourceSettings = field(default_factory=TextSource)
    first_tokens: Ragged | None = None  # of tagged texts: the position of each word's first token

    def __len__(self) -> int:
        return len(self.index)

    @property
    def source_lengths(self) -> NDArray[np.int32]:
        """In tokens, including special tokens; of media, about how many positions."""
        if self.medium is not None and self.source_rows is not None:
            return self.medium.position_counts(self.source.lengths[self.source_rows[self.index]])
        return self.source.lengths[self.index] + len(add_special_tokens([], self.source_settings))

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        """In tokens, including the end-of-sequence token."""
        return self.target.lengths[self.index] + self.has_eos

    def origin(self, number: int) -> int:
        """The stored example of a number."""
        return int(self.index[number])

    def text(self, number: int) -> str:
        """The text of a source, or its file name."""
        return self.texts(number)[0]

    def texts(self, number: int) -> tuple[str, str]:
        """The texts of source and target, before placeholders become symbols."""
        at = int(self.index[number])
        return decode_text(self.source_text[at]), decode_text(self.target_text[at])

    def tokens(self, number: int) -> tuple[SourceInput, list[int]]:
        """Source and target as the model has them: tokens with special tokens, or an array."""
        at = int(self.index[number])
        target = [*map(int, self.target[at]), *([EOS] if self.has_eos else [])]
        if self.medium is not None and self.source_rows is not None:
            return self.medium.reshape(self.source[int(self.source_rows[at])]), target
        return add_special_tokens([*map(int, self.source[at])], self.source_settings), target

    def predictor_input(self, number: int) -> Any:
        """The source as the input of a predictor."""
        source = self.text(number)
        return source if self.medium is None else DecodedMedia(self.tokens(number)[0], source)

    def position_labels(self, number: int) -> list[int]:
        """The label at each position of the source: a tag where a word begins, PAD elsewhere."""
        assert self.first_tokens is not None
        source, tags = self.tokens(number)
        offset = int(source[0] == BOS)
        labels = [PAD] * len(source)
        for position, tag in zip(self.first_tokens[int(self.index[number])].tolist(), tags, strict=True):
            labels[position + offset] = tag
        return labels

    def links(self, number: int) -> NDArray[np.int64]:
        """[N, 2]: the aligned source and target words, counted from 0."""
        links = np.zeros(0) if self.word_links is None else self.word_links[int(self.index[number])]
        return links.astype(np.int64).reshape(-1, 2)
