"""Masked language modeling over plain text: BERT (Devlin et al. 2018, arXiv:1810.04805).

15 % of the tokens are selected anew each time: 80 % of these are replaced by the mask token, 10 % by random tokens, and
10 % stay as they are; all of them are predicted. Whole words may be selected instead, as the authors did later.
Next-sentence prediction: a passage has two segments, and half of the time the second one is taken from another passage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.packing import Passages, pack_sequences
from regard.data.ragged_array import Ragged
from regard.data.settings import MaskSettings
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.special_tokens import BOS, EOS, MASK, PAD

MASK_RATE, RANDOM_RATE = 0.8, 0.1  # of the selected tokens: replaced by the mask token, by a random one


@dataclass(frozen=True)
class MaskedPassages(Passages):
    """Passages of an encoder, each between its special tokens."""

    tokenizer: SubwordTokenizer
    segments: int  # 1, or 2 for next-sentence prediction

    @staticmethod
    def build(
        documents: Ragged,
        texts: Ragged,
        index: NDArray[np.int64],
        max_tokens: int,
        tokenizer: SubwordTokenizer,
        *,
        pairs: bool,
    ) -> "MaskedPassages":
        """All passages of the documents of this index, of at most `max_tokens` tokens including special tokens."""
        segments = 2 if pairs else 1
        max_content = max(segments, max_tokens - segments - 1)
        lengths = documents.lengths[index].astype(np.int64)
        counts = -(-lengths // max_content)
        document = np.repeat(index, counts)
        start = (np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)) * max_content
        end = np.minimum(start + max_content, np.repeat(lengths, counts))
        spans = np.stack([document, start, end], 1)
        spans = spans[spans[:, 2] - spans[:, 1] >= segments]
        return MaskedPassages(documents, texts, spans, max_tokens, tokenizer, segments)

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        """In tokens, including special tokens."""
        return (self.spans[:, 2] - self.spans[:, 1] + self.segments + 1).astype(np.int32)

    def tokens(self, number: int) -> list[int]:
        """The tokens of a passage, without special tokens."""
        document, start, end = map(int, self.spans[number])
        return [int(token) for token in self.documents[document][start:end]]

    @cached_property
    def word_starts(self) -> NDArray[np.bool_]:
        """Which entries of the vocabulary begin a word."""
        return self.tokenizer.word_starts


class MaskedExample(NamedTuple):
    """One masked passage."""

    inputs: list[int]
    labels: list[int]  # PAD where nothing is predicted
    is_next: bool  # whether its second segment follows the first


class MaskedBatch(NamedTuple):
    """Masked passages packed into rows [B, T]."""

    inputs: Tensor
    labels: Tensor  # PAD where nothing is predicted
    document: Tensor
    position: Tensor
    next_sentence: Tensor  # at the first token of a passage 1 if its second segment follows the first, else 0; or -1


def mask_passages(passages: MaskedPassages, numbers: Sequence[int], settings: MaskSettings, key: int) -> MaskedBatch:
    """The passages of these numbers, masked at random as a function of `key`."""
    rng = np.random.default_rng([key & 0xFFFFFFFFFFFFFFFF, 1])
    examples = [_mask_passage(passages, int(number), settings, rng) for number in numbers]
    rows = pack_sequences([(example.inputs, example.labels) for example in examples], passages.max_tokens)
    next_sentence = torch.full_like(rows.inputs, -1)
    if passages.segments == 2:
        next_sentence[rows.inputs == BOS] = torch.tensor([int(example.is_next) for example in examples])
    return MaskedBatch(*rows, next_sentence)


def _mask_passage(
    passages: MaskedPassages, number: int, settings: MaskSettings, rng: np.random.Generator
) -> MaskedExample:
    tokens = passages.tokens(number)
    is_next = True
    if passages.segments == 2:
        split = int(rng.integers(1, len(tokens)))
        first, second = tokens[:split], tokens[split:]
        is_next = bool(rng.random() < 0.5)
        if not is_next:
            second = passages.tokens(int(rng.integers(len(passages))))[: len(second)]
        tokens = [*first, EOS, *second]
    inputs, labels = mask_tokens([BOS, *tokens, EOS], passages.word_starts, settings, rng)
    return MaskedExample(inputs, labels, is_next)


def mask_tokens(
    tokens: Sequence[int], word_starts: NDArray[np.bool_], settings: MaskSettings, rng: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Tokens, some of them masked, and the label at each position: PAD where nothing is predicted.

    Special tokens are never masked. word_starts: which entries of the vocabulary begin a word.
    """
    inputs = np.array(tokens)
    labels = np.full(len(inputs), PAD)
    candidates = np.flatnonzero((inputs != BOS) & (inputs != EOS))
    count = max(1, round(settings.probability * len(candidates)))
    if settings.whole_words:
        word = np.cumsum(word_starts[inputs[candidates]])  # the word that each token belongs to
        order = rng.permutation(int(word[-1]) + 1)
        rank = np.argsort(order)[word]  # of each token's word in a random order of the words
        sizes = np.bincount(rank, minlength=len(order))
        totals = np.cumsum(sizes)
        # As many words as have `count` tokens at most, but at least one.
        max_words = max(int(np.searchsorted(totals, count, "right")), int(np.argmax(sizes > 0)) + 1)
        selected = candidates[rank < max_words]
    else:
        selected = rng.permutation(candidates)[:count]
    labels[selected] = inputs[selected]
    draw = rng.random(len(selected))
    random_tokens = rng.integers(MASK + 1, len(word_starts), len(selected))
    unmasked = np.where(draw < MASK_RATE + RANDOM_RATE, random_tokens, inputs[selected])
    inputs[selected] = np.where(draw < MASK_RATE, MASK, unmasked)
    return inputs.tolist(), labels.tolist()
