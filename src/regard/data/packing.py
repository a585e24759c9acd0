"""Plain text for language models: documents split into passages of at most the model's context, packed into rows.

Short passages share a row, so that only its end is padded. Positions are counted from the start of each passage, and a
passage attends only to itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.ragged_array import Ragged, decode_text
from regard.special_tokens import BOS, EOS, PAD


@dataclass(frozen=True)
class Passages:
    """Passages by number.

    A document that is longer than `max_tokens` is split; the first input of a later passage is the last label of the
    passage before it.
    """

    documents: Ragged  # tokens
    texts: Ragged
    spans: NDArray[np.int64]  # [N, 3]: each passage's document, and the start and end of its tokens, with the end token
    max_tokens: int

    @staticmethod
    def from_documents(documents: Ragged, texts: Ragged, index: NDArray[np.int64], max_tokens: int) -> "Passages":
        """All passages of the documents of this index."""
        lengths = documents.lengths[index].astype(np.int64) + 1  # with the end token
        counts = -(-lengths // max_tokens)
        document = np.repeat(index, counts)
        start = (np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)) * max_tokens
        end = np.minimum(start + max_tokens, np.repeat(lengths, counts))
        return Passages(documents, texts, np.stack([document, start, end], 1), max_tokens)

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        """In tokens, including the end token."""
        return (self.spans[:, 2] - self.spans[:, 1]).astype(np.int32)

    def origin(self, number: int) -> int:
        """The document of a passage."""
        return int(self.spans[number, 0])

    def text(self, number: int) -> str:
        """The text of the whole document of a passage."""
        return decode_text(self.texts[int(self.spans[number, 0])])

    def inputs_and_labels(self, number: int) -> tuple[list[int], list[int]]:
        """The input tokens of a passage, and the next token of each."""
        document, start, end = map(int, self.spans[number])
        tokens = [BOS, *map(int, self.documents[document]), EOS]
        return tokens[start:end], tokens[start + 1 : end + 1]


def plan_packed_batches(
    lengths: NDArray[np.int32], *, row_length: int, tokens: int, seed: int, epoch: int
) -> list[NDArray[np.int64]]:
    """Passage numbers of each batch, in an order that is a pure function of (seed, epoch).

    A batch has as many passages as fill tokens // row_length rows.
    """
    order = np.random.default_rng([seed & 0xFFFFFFFFFFFFFFFF, epoch]).permutation(len(lengths))
    rows = assign_rows(lengths[order], row_length)
    rows_per_batch = max(1, tokens // row_length)
    boundaries = np.flatnonzero(np.diff(rows // rows_per_batch)) + 1
    return np.split(order, boundaries)


def assign_rows(lengths: NDArray[np.int32], row_length: int) -> NDArray[np.int64]:
    """The row of each passage: passages in order, each in the current row if it fits there, else in the next."""
    rows = np.zeros(len(lengths), np.int64)
    row = used = 0
    for number, length in enumerate(lengths.tolist()):
        if used + length > row_length:
            row, used = row + 1, 0
        rows[number] = row
        used += length
    return rows


class PackedRows(NamedTuple):
    """Passages in rows [B, T]."""

    inputs: Tensor
    labels: Tensor
    document: Tensor  # the index of each token's passage in its row, from 1; 0 at padding
    position: Tensor  # counted from the start of the passage


def pack_sequences(sequences: Sequence[tuple[list[int], list[int]]], row_length: int) -> PackedRows:
    """Passages, each as inputs and labels, one after the other in rows."""
    lengths = np.array([len(inputs) for inputs, _ in sequences], np.int32)
    rows = assign_rows(lengths, row_length)
    first = np.searchsorted(rows, rows)  # the first passage in the row of each
    ends = np.cumsum(lengths)
    starts = ends - lengths - (ends - lengths)[first]
    shape = int(rows[-1]) + 1, int((starts + lengths).max())
    arrays = [np.full(shape, PAD, np.int64) for _ in PackedRows._fields]
    for number, sequence in enumerate(sequences):
        cells = rows[number], slice(starts[number], starts[number] + lengths[number])
        values = (*sequence, number - first[number] + 1, np.arange(lengths[number]))
        for array, value in zip(arrays, values, strict=True):
            array[cells] = value
    return PackedRows(*map(torch.from_numpy, arrays))
