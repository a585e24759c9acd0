"""Batches by tokens, of examples of like length, in an order that is a pure function of (seed, epoch)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.corpus import Corpus, Pairs
from regard.data.links import guide
from regard.data.settings import SubwordSettings
from regard.tokens import BEGIN, END, PAD


@dataclass(frozen=True)
class Batch:
    """Some examples as tensors."""

    source: Tensor  # [B, Ts]
    mask: Tensor  # [B, Ts], True where there is a token
    before: Tensor  # [B, Tt] the target, beginning first: what goes before each step
    after: Tensor  # [B, Tt] the target, end last: what each step should say
    numbers: NDArray[np.int64]  # which examples these are
    guide: Tensor | None = None  # [B, Tt, Ts] where each step should look, where that is known; rows of 1 or 0 in all

    @property
    def tokens(self) -> int:
        """Target tokens without padding."""
        return int((self.after != PAD).sum())

    @property
    def source_tokens(self) -> int:
        """Source tokens without padding."""
        return int(self.mask.sum())


def tokens_for(corpus_tokens: int) -> int:
    """The size of batch for a corpus of so many target tokens: 1,024 to 4,096.

    Small data learn faster from many small batches: of 0.5 million tokens, batches of 1,024 after as many tokens were
    1.3 BLEU ahead of 2,048, and these ahead of 4,096. Larger ones use the processor better.
    """
    return 1024 if corpus_tokens < 2_000_000 else 2048 if corpus_tokens < 8_000_000 else 4096


def plan_epoch(
    source: NDArray[np.int32], target: NDArray[np.int32], *, tokens: int, seed: int, epoch: int
) -> list[NDArray[np.int64]]:
    """Example numbers of each batch, for lengths of sources and targets [N].

    A batch's longer side, padded, has at most `tokens` tokens, but at least one example. Examples are sorted by their
    longer side; those of equal length are in a new order each epoch, and so are the batches. (To sort by both sides
    would save 2 % of padding, but fill a batch with pairs that are all free or all literal, or all wrong: their
    ratio of lengths would vary four times as much from batch to batch, and the loss from 1 to 4.)
    """
    draw = np.random.default_rng([seed & 0xFFFFFFFFFFFFFFFF, epoch])
    order = draw.permutation(len(target))
    longer = np.maximum(source, target).astype(np.int64)
    order = order[np.argsort(longer[order], kind="stable")]
    longer = longer[order]
    batches = []
    start = 0
    while start < len(order):
        # The most examples from `start` on whose longest side, padded, still fits.
        window = longer[start : start + max(1, tokens // max(1, int(longer[start])))]
        room = np.maximum.accumulate(window) * np.arange(1, len(window) + 1) <= tokens
        count = len(window) if room.all() else max(1, int(np.argmin(room)))
        batches.append(order[start : start + count])
        start += count
    draw.shuffle(batches)
    return batches


def padded(sequences: list[list[int]]) -> Tensor:
    """[B, longest], padding at the end."""
    longest = max(map(len, sequences))
    rows = np.full((len(sequences), longest), PAD, np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(rows)


def collate(sources: list[list[int]], targets: list[list[int]], numbers: NDArray[np.int64]) -> Batch:
    """Token sequences, each with its end, as a batch."""
    source, after = padded(sources), padded(targets)
    return Batch(source, source != PAD, padded([[BEGIN, *target[:-1]] for target in targets]), after, numbers)


def load_batch(
    corpus: Corpus, pairs: Pairs, numbers: NDArray[np.int64], *, sampling: SubwordSettings | None = None, key: int = 0
) -> Batch:
    """The examples of these numbers; with `sampling`, cut at random as `key` says."""
    if sampling is None or not sampling.sampling:
        sides = [pairs.tokens(int(number)) for number in numbers]
        return _guided(
            corpus, pairs, collate([source for source, _ in sides], [target for _, target in sides], numbers)
        )
    texts = [pairs.texts(int(number)) for number in numbers]
    if corpus.protection.uses_symbols:
        texts = [corpus.protection.protect_pair(*pair) or pair for pair in texts]
    tokens = [
        [[*cut, END] for cut in subwords.sample([text[side] for text in texts], sampling, key + side)]
        for side, subwords in enumerate((corpus.source_subwords, corpus.target_subwords))
    ]
    return _guided(corpus, pairs, collate(tokens[0], tokens[1], numbers))


def _guided(corpus: Corpus, pairs: Pairs, batch: Batch) -> Batch:
    """With where to look, if the examples have links."""
    if pairs.linked is None:
        return batch
    whole = torch.zeros(*batch.after.shape, batch.source.shape[1])
    for row, number in enumerate(batch.numbers):
        links = pairs.links(int(number))
        if len(links):
            # Without the ends: nobody knows where these come from.
            source = corpus.source_subwords.pieces(batch.source[row][batch.mask[row]].tolist()[:-1])
            after = batch.after[row]
            target = corpus.target_subwords.pieces(after[after != PAD].tolist()[:-1])
            whole[row, : len(target), : len(source)] = torch.from_numpy(guide(links, source, target))
    return replace(batch, guide=whole)


def in_order(pairs: Pairs, *, tokens: int) -> Iterator[NDArray[np.int64]]:
    """Every example once, by length: for validation, where order does not matter."""
    yield from plan_epoch(pairs.source_lengths, pairs.target_lengths, tokens=tokens, seed=0, epoch=0)
