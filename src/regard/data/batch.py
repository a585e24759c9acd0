"""Batches: examples as tensors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.corpus import Corpus
from regard.data.media.base import MediaProcessor
from regard.data.pair_dataset import PairDataset
from regard.data.settings import DataSettings
from regard.data.vocabulary import SourceInput, SourceProcessor, text_tokenizer
from regard.data.word_links import alignment_targets
from regard.models.outputs import Packing
from regard.special_tokens import BOS, PAD


@dataclass(frozen=True)
class Batch:
    """Some examples as tensors."""

    source: Tensor  # [B, Ts] tokens, [B, C, S, S] images, or [B, Ts, F] frames
    mask: Tensor  # [B, Ts], True where there is a token, a frame, a cell of an image
    decoder_input: Tensor  # [B, Tt], the target shifted right
    labels: Tensor  # [B, Tt]; PAD where nothing is predicted
    indices: NDArray[np.int64]  # which examples these are
    document: Tensor | None = (
        None  # [B, Tt], of texts that share rows: the index of each step's text, from 1; 0 at padding
    )
    position: Tensor | None = None  # [B, Tt], and the step's position in it
    next_sentence: Tensor | None = None  # [B, Ts], where two segments begin: whether the second follows; -1 elsewhere
    values: Tensor | None = None  # [B, H, V], of series: numbers to forecast, NaN where they are unknown
    alignment: Tensor | None = None  # [B, Tt, Ts], where each step should attend; rows sum to 1, or to 0 if unknown

    @property
    def packing(self) -> Packing | None:
        """Which texts share rows; None if none do."""
        return None if self.document is None or self.position is None else Packing(self.document, self.position)

    @property
    def tokens(self) -> int:
        """Target tokens without padding."""
        return int((self.labels != PAD).sum())


def pad_sequences(sequences: Sequence[Sequence[int]]) -> Tensor:
    """[B, T], with padding after each sequence."""
    max_length = max(map(len, sequences))
    rows = np.full((len(sequences), max_length), PAD, np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(rows)


def collate_sources(side: SourceProcessor, sources: Sequence[SourceInput]) -> tuple[Tensor, Tensor]:
    """Sources as a padded tensor, and its mask [B, Ts]."""
    if isinstance(side, MediaProcessor):
        source, mask = side.collate(sources)
        return torch.from_numpy(source), torch.from_numpy(mask)
    tokens = pad_sequences([list(each) for each in sources])
    return tokens, tokens != PAD


def collate_tokens(sources: list[list[int]], targets: list[list[int]], numbers: NDArray[np.int64]) -> Batch:
    """Token sequences, each with its end-of-sequence token, as a batch."""
    source = pad_sequences(sources)
    return _batch((source, source != PAD), targets, numbers)


def _batch(source: tuple[Tensor, Tensor], targets: list[list[int]], numbers: NDArray[np.int64]) -> Batch:
    shifted = pad_sequences([[BOS, *target[:-1]] for target in targets])
    return Batch(*source, shifted, pad_sequences(targets), numbers)


def load_batch(
    corpus: Corpus, dataset: Any, numbers: NDArray[np.int64], *, settings: DataSettings | None = None, key: int = 0
) -> Batch:
    """The examples of these numbers. settings: for training, how texts are segmented and media varied at random."""
    return corpus.kind.collate(corpus, dataset, numbers, settings, key)


def collate_pairs(
    corpus: Corpus,
    dataset: PairDataset,
    sources: Sequence[SourceInput],
    targets: list[list[int]],
    numbers: NDArray[np.int64],
    settings: DataSettings | None,
    key: int,
) -> Batch:
    """Sources and targets as a batch; media are augmented if there are settings, as a function of `key`."""
    source, mask = collate_sources(corpus.source_processor, sources)
    if settings is not None and dataset.medium is not None:
        source = dataset.medium.augment(source, mask, settings.augment, key)
    return _batch((source, mask), targets, numbers)


def with_alignment_targets(corpus: Corpus, dataset: PairDataset, batch: Batch) -> Batch:
    """With the alignment that attention is guided to, if the examples have word links."""
    if dataset.word_links is None:
        return batch
    alignment = torch.zeros(*batch.labels.shape, batch.source.shape[1])
    for row, number in enumerate(batch.indices):
        links = dataset.links(int(number))
        if len(links):
            # Without the end tokens, whose alignment is not known.
            source = text_tokenizer(corpus.source_processor).pieces(batch.source[row][batch.mask[row]].tolist()[:-1])
            labels = batch.labels[row]
            target = corpus.target_vocabulary.pieces(labels[labels != PAD].tolist()[:-1])
            alignment[row, : len(target), : len(source)] = torch.from_numpy(alignment_targets(links, source, target))
    return replace(batch, alignment=alignment)


def plan_batches(corpus: Corpus, dataset: Any, *, tokens: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Example numbers of each batch of an epoch."""
    return corpus.kind.plan(dataset, tokens=tokens, seed=seed, epoch=epoch)


def validation_batches(corpus: Corpus, dataset: Any, *, tokens: int) -> list[NDArray[np.int64]]:
    """Every example once: for validation, where the order does not matter."""
    return plan_batches(corpus, dataset, tokens=tokens, seed=0, epoch=0)
