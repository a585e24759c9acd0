"""Batches by tokens, of examples of like length, in an order that is a pure function of (seed, epoch)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.augmentation import augment
from regard.data.dataset import Corpus, Pairs
from regard.data.labels import Ends
from regard.data.masking import Masked, guesses
from regard.data.media import Medium
from regard.data.packing import Passages, packed, plan_packed
from regard.data.segments import encoded, framed
from regard.data.settings import DataSettings
from regard.data.vocabulary import Given, SourceSide, in_text
from regard.data.word_links import alignment_targets
from regard.special_tokens import BEGIN, END, PAD


@dataclass(frozen=True)
class Batch:
    """Some examples as tensors."""

    source: Tensor  # [B, Ts] tokens, [B, C, S, S] pictures, or [B, Ts, F] frames
    mask: Tensor  # [B, Ts], True where there is a token, a frame, a cell of a picture
    before: Tensor  # [B, Tt] the target, beginning first: what goes before each step
    after: Tensor  # [B, Tt] the target, end last: what each step should say
    numbers: NDArray[np.int64]  # which examples these are
    passage: Tensor | None = None  # [B, Tt] of texts that share rows, which of its row each step is of; 0 for none
    place: Tensor | None = None  # [B, Tt] and the step's place in it
    follows: Tensor | None = None  # [B, Ts] at marks that begin two parts, whether the second follows; -1 elsewhere
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


def given(side: SourceSide, sources: Sequence[Given]) -> tuple[Tensor, Tensor]:
    """Sources as tensors: what a model is given, and a mask [B, Ts]."""
    if isinstance(side, Medium):
        source, mask = side.collated(sources)
        return torch.from_numpy(source), torch.from_numpy(mask)
    tokens = padded([list(each) for each in sources])
    return tokens, tokens != PAD


def collate(sources: list[list[int]], targets: list[list[int]], numbers: NDArray[np.int64]) -> Batch:
    """Token sequences, each with its end, as a batch."""
    source = padded(sources)
    return _batch((source, source != PAD), targets, numbers)


def _batch(source: tuple[Tensor, Tensor], targets: list[list[int]], numbers: NDArray[np.int64]) -> Batch:
    return Batch(*source, padded([[BEGIN, *target[:-1]] for target in targets]), padded(targets), numbers)


def load_batch(
    corpus: Corpus,
    pairs: Pairs | Passages,
    numbers: NDArray[np.int64],
    *,
    varied: DataSettings | None = None,
    key: int = 0,
) -> Batch:
    """The examples of these numbers; texts cut and media varied at random as the settings and the key say, if given."""
    if isinstance(pairs, Masked):
        drawn = key if varied is not None else int(numbers[0])
        hidden = guesses(pairs, numbers.tolist(), (varied or DataSettings()).mask, drawn)
        there = hidden.source != PAD
        packing = hidden.passage, hidden.place
        follows = hidden.follows if pairs.parts == 2 else None
        return Batch(hidden.source, there, hidden.source, hidden.after, numbers, *packing, follows)
    if isinstance(pairs, Passages):
        rows = packed([pairs.steps(int(number)) for number in numbers], pairs.longest)
        nothing = given(corpus.source_side, list(rows.before))
        return Batch(*nothing, rows.before, rows.after, numbers, rows.passage, rows.place)
    if pairs.firsts is not None:
        sources = [pairs.tokens(int(number))[0] for number in numbers]
        source, mask = given(corpus.source_side, sources)
        return Batch(source, mask, source, padded([pairs.tagged(int(number)) for number in numbers]), numbers)
    sampling = None if varied is None else varied.subwords
    sides = [pairs.tokens(int(number)) for number in numbers]
    sources, targets = [source for source, _ in sides], [target for _, target in sides]
    if sampling is not None and sampling.sampling and not isinstance(corpus.target_side, Ends):
        texts = [pairs.texts(int(number)) for number in numbers]
        if corpus.protection.uses_symbols:
            texts = [corpus.protection.protect_pair(*pair) or pair for pair in texts]
        ends = [END] if pairs.ends else []
        cut = corpus.target_side.sample([target for _, target in texts], sampling, key + 1)
        targets = [[*each, *ends] for each in cut]
        if pairs.medium is None:
            read = partial(in_text(corpus.source_side).sample, settings=sampling, key=key)
            sources = [framed(each, corpus.reads) for each in encoded([text for text, _ in texts], corpus.reads, read)]
    source, mask = given(corpus.source_side, sources)
    if varied is not None and pairs.medium is not None:
        source = augment(source, mask, varied.augment, key)
    return _guided(corpus, pairs, _batch((source, mask), targets, numbers))


def _guided(corpus: Corpus, pairs: Pairs, batch: Batch) -> Batch:
    """With where to look, if the examples have links."""
    if pairs.linked is None:
        return batch
    whole = torch.zeros(*batch.after.shape, batch.source.shape[1])
    for row, number in enumerate(batch.numbers):
        links = pairs.links(int(number))
        if len(links):
            # Without the ends: nobody knows where these come from.
            source = in_text(corpus.source_side).pieces(batch.source[row][batch.mask[row]].tolist()[:-1])
            after = batch.after[row]
            target = corpus.target_side.pieces(after[after != PAD].tolist()[:-1])
            whole[row, : len(target), : len(source)] = torch.from_numpy(alignment_targets(links, source, target))
    return replace(batch, guide=whole)


def epoch_of(pairs: Pairs | Passages, *, tokens: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Example numbers of each batch of an epoch."""
    if isinstance(pairs, Passages):
        return plan_packed(pairs.target_lengths, longest=pairs.longest, tokens=tokens, seed=seed, epoch=epoch)
    return plan_epoch(pairs.source_lengths, pairs.target_lengths, tokens=tokens, seed=seed, epoch=epoch)


def in_order(pairs: Pairs | Passages, *, tokens: int) -> Iterator[NDArray[np.int64]]:
    """Every example once: for validation, where order does not matter."""
    yield from epoch_of(pairs, tokens=tokens, seed=0, epoch=0)
