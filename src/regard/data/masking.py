"""Plain text with words hidden, to learn by guessing them: BERT's lesson (Devlin et al. 2018, arXiv:1810.04805).

Of 15 % of the words, chosen anew each time, 80 % are hidden, 10 % are replaced by others and 10 % stay as they are; all
of them are to be said. Whole words may be hidden at once, as the authors did later. Next-sentence prediction: a passage
is two spans, and half of the time the second is taken from elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.packing import Passages, packed
from regard.data.ragged_array import Ragged
from regard.data.settings import MaskSettings
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.special_tokens import BEGIN, END, MASK, PAD

HIDDEN, REPLACED = 0.8, 0.1  # of the words that are to be guessed


@dataclass(frozen=True)
class Masked(Passages):
    """Passages that are read, each between its marks."""

    subwords: SubwordTokenizer
    parts: int  # 1, or 2 where the second may follow the first

    @staticmethod
    def within(
        documents: Ragged,
        written: Ragged,
        index: NDArray[np.int64],
        longest: int,
        subwords: SubwordTokenizer,
        *,
        pairs: bool,
    ) -> "Masked":
        """All passages of the documents of this index, at most `longest` tokens with their marks."""
        parts = 2 if pairs else 1
        room = max(parts, longest - parts - 1)
        lengths = documents.lengths[index].astype(np.int64)
        counts = -(-lengths // room)
        document = np.repeat(index, counts)
        first = (np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)) * room
        last = np.minimum(first + room, np.repeat(lengths, counts))
        where = np.stack([document, first, last], 1)
        where = where[where[:, 2] - where[:, 1] >= parts]
        return Masked(documents, written, where, longest, subwords, parts)

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        """In tokens, the marks included."""
        return (self.where[:, 2] - self.where[:, 1] + self.parts + 1).astype(np.int32)

    def span(self, number: int) -> list[int]:
        """The tokens of a passage."""
        document, first, last = map(int, self.where[number])
        return [int(token) for token in self.documents[document][first:last]]

    @cached_property
    def starts(self) -> NDArray[np.bool_]:
        """Which entries of the vocabulary begin a word."""
        return self.subwords.word_starts


class Guess(NamedTuple):
    """A passage as it is read, and what is to be said of it."""

    read: list[int]
    said: list[int]  # PAD where there is nothing to guess
    follows: bool


class Guesses(NamedTuple):
    """Passages in rows [B, T]."""

    source: Tensor
    after: Tensor  # what each place should say; PAD for nothing
    passage: Tensor
    place: Tensor
    follows: Tensor  # [B, T]: at the mark that begins a passage 1 if its second part follows the first, else 0; or -1


def guesses(passages: Masked, numbers: Sequence[int], settings: MaskSettings, key: int) -> Guesses:
    """The passages of these numbers, words hidden as the key says."""
    dice = np.random.default_rng([key & 0xFFFFFFFFFFFFFFFF, 1])
    each = [_guess(passages, int(number), settings, dice) for number in numbers]
    rows = packed([(guess.read, guess.said) for guess in each], passages.longest)
    follows = torch.full_like(rows.before, -1)
    if passages.parts == 2:
        follows[rows.before == BEGIN] = torch.tensor([int(guess.follows) for guess in each])
    return Guesses(rows.before, rows.after, rows.passage, rows.place, follows)


def _guess(passages: Masked, number: int, settings: MaskSettings, dice: np.random.Generator) -> Guess:
    tokens = passages.span(number)
    follows = True
    if passages.parts == 2:
        cut = int(dice.integers(1, len(tokens)))
        first, second = tokens[:cut], tokens[cut:]
        follows = bool(dice.random() < 0.5)
        if not follows:
            second = passages.span(int(dice.integers(len(passages))))[: len(second)]
        tokens = [*first, END, *second]
    read, said = hidden([BEGIN, *tokens, END], passages.starts, settings, dice)
    return Guess(read, said, follows)


def hidden(
    tokens: Sequence[int], starts: NDArray[np.bool_], settings: MaskSettings, dice: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Tokens between their marks, some of them hidden, and what is to be said at each place, PAD for nothing.

    starts: which entries of the vocabulary begin a word.
    """
    read = np.array(tokens)
    said = np.full(len(read), PAD)
    words = np.flatnonzero((read != BEGIN) & (read != END))
    wanted = max(1, round(settings.share * len(words)))
    if settings.whole_words:
        word = np.cumsum(starts[read[words]])  # of each token, which word it is of
        order = dice.permutation(int(word[-1]) + 1)
        place = np.argsort(order)[word]  # words in an order of their own
        sizes = np.bincount(place, minlength=len(order))
        upto = np.cumsum(sizes)
        # As many words as do not pass the share, but one at least.
        most = max(int(np.searchsorted(upto, wanted, "right")), int(np.argmax(sizes > 0)) + 1)
        chosen = words[place < most]
    else:
        chosen = dice.permutation(words)[:wanted]
    said[chosen] = read[chosen]
    draw = dice.random(len(chosen))
    others = dice.integers(MASK + 1, len(starts), len(chosen))
    read[chosen] = np.where(draw < HIDDEN, MASK, np.where(draw < HIDDEN + REPLACED, others, read[chosen]))
    return read.tolist(), said.tolist()
