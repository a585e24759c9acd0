"""Plain text to learn a language from: documents in passages as long as a model reads, several of them side by side.

Packed: short passages share a row, so that nothing is padded but its end. Each counts its places from its own beginning
and sees itself alone, as if the others were not there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.ragged_array import Ragged, decode_text
from regard.special_tokens import BEGIN, END, PAD


@dataclass(frozen=True)
class Passages:
    """Passages by number. A document that is longer than `longest` is cut; what follows begins with the last word of
    what went before."""

    documents: Ragged  # tokens
    written: Ragged  # their texts
    where: NDArray[
        np.int64
    ]  # [N, 3]: of each passage its document, and the first and last of its tokens, the end's too
    longest: int

    @staticmethod
    def of(documents: Ragged, written: Ragged, index: NDArray[np.int64], longest: int) -> "Passages":
        """All passages of the documents of this index."""
        ends = documents.lengths[index].astype(np.int64) + 1  # with the end's mark
        counts = -(-ends // longest)
        document = np.repeat(index, counts)
        first = (np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)) * longest
        last = np.minimum(first + longest, np.repeat(ends, counts))
        return Passages(documents, written, np.stack([document, first, last], 1), longest)

    def __len__(self) -> int:
        return len(self.where)

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        """In tokens, the end's mark included."""
        return (self.where[:, 2] - self.where[:, 1]).astype(np.int32)

    def origin(self, number: int) -> int:
        """The document that a passage is of."""
        return int(self.where[number, 0])

    def text(self, number: int) -> str:
        """Of the whole document that a passage is of."""
        return decode_text(self.written[int(self.where[number, 0])])

    def steps(self, number: int) -> tuple[list[int], list[int]]:
        """What goes before each step, and what each step should say."""
        document, first, last = map(int, self.where[number])
        whole = [BEGIN, *map(int, self.documents[document]), END]
        return whole[first:last], whole[first + 1 : last + 1]


def plan_packed(
    lengths: NDArray[np.int32], *, longest: int, tokens: int, seed: int, epoch: int
) -> list[NDArray[np.int64]]:
    """Passages of each batch, in an order that is a pure function of (seed, epoch): as many as fill the rows that a
    batch of so many tokens has."""
    order = np.random.default_rng([seed & 0xFFFFFFFFFFFFFFFF, epoch]).permutation(len(lengths))
    rows = rows_of(lengths[order], longest)
    at_once = max(1, tokens // longest)
    cuts = np.flatnonzero(np.diff(rows // at_once)) + 1
    return np.split(order, cuts)


def rows_of(lengths: NDArray[np.int32], longest: int) -> NDArray[np.int64]:
    """The row that each passage stands in, if one after the other is put where there is still room."""
    rows = np.zeros(len(lengths), np.int64)
    row = used = 0
    for number, length in enumerate(lengths.tolist()):
        if used + length > longest:
            row, used = row + 1, 0
        rows[number] = row
        used += length
    return rows


class Rows(NamedTuple):
    """Passages in rows [B, T]."""

    before: Tensor  # what goes before each step
    after: Tensor  # what each step should say
    passage: Tensor  # which passage of its row, from 1; 0 where there is none
    place: Tensor  # counted from the passage's beginning


def packed(sequences: Sequence[tuple[list[int], list[int]]], longest: int) -> Rows:
    """Passages, each what goes before and what comes after, one after the other in rows."""
    lengths = np.array([len(before) for before, _ in sequences], np.int32)
    rows = rows_of(lengths, longest)
    first = np.searchsorted(rows, rows)  # the first passage of each one's row
    ends = np.cumsum(lengths)
    starts = ends - lengths - (ends - lengths)[first]
    arrays = [np.full((int(rows[-1]) + 1, int((starts + lengths).max())), PAD, np.int64) for _ in Rows._fields]
    for number, sequence in enumerate(sequences):
        here = rows[number], slice(starts[number], starts[number] + lengths[number])
        values = (*sequence, number - first[number] + 1, np.arange(lengths[number]))
        for array, value in zip(arrays, values, strict=True):
            array[here] = value
    return Rows(*map(torch.from_numpy, arrays))
