"""A shortlist: for each source subword, the target subwords that may come of it. Imports no PyTorch.

Made from a lexicon of the training pairs. With it, the output layer of a search has hundreds of entries instead of
thousands. A sentence's candidates are those of its own subwords, and the most frequent ones, which come of nothing in
particular.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from regard.alignment.lexicon import Lexicon
from regard.errors import RegardError
from regard.special_tokens import END

CANDIDATES = 300  # of each source subword: with 100, Multi30k lost 0.26 BLEU
FREQUENT = 150  # that are always there


@dataclass(frozen=True)
class Shortlist:
    """candidates [source vocabulary, n], filled up with -1; always [m], sorted."""

    candidates: NDArray[np.int32]
    always: NDArray[np.int32]

    def of(self, source: Sequence[int]) -> NDArray[np.int32]:
        """The target tokens that may be said of these source tokens, sorted; special ones are always among them."""
        said = np.zeros(self._highest + 2, np.bool_)
        said[self.candidates[np.asarray(source, np.int64)]] = True
        said[self.always] = True
        said[: END + 1] = True
        return np.flatnonzero(said[:-1]).astype(np.int32)  # the last is what lists are filled up with

    @cached_property
    def _highest(self) -> int:
        return int(max(self.candidates.max(initial=END), self.always.max(initial=END)))

    def as_bytes(self) -> bytes:
        """A safetensors file's content."""
        small = self._highest <= np.iinfo(np.int16).max
        return save({"candidates": self.candidates.astype(np.int16 if small else np.int32), "always": self.always})


def load_shortlist(path: Path, *, source_vocabulary: int, target_vocabulary: int) -> Shortlist | None:
    """From a file; None if there is none. Raises RegardError if it is damaged or of another model."""
    if not path.exists():
        return None
    try:
        arrays = load_file(path)
        found = Shortlist(arrays["candidates"].astype(np.int32), arrays["always"].astype(np.int32))
    except (OSError, SafetensorError, KeyError) as error:
        raise RegardError(f"{path}: it is damaged and cannot be read ({error}); remove it.") from None
    fits = found.candidates.ndim == 2 and len(found.candidates) == source_vocabulary and found.always.ndim == 1
    largest = max(int(part.max(initial=-1)) for part in (found.candidates, found.always))
    smallest = min(int(part.min(initial=0)) for part in (found.candidates, found.always))
    if not fits or largest >= target_vocabulary or smallest < -1:
        raise RegardError(f"{path}: it belongs to another model; remove it.")
    return found


def shortlist_of(lexicon: Lexicon, *, source_vocabulary: int, joint: bool = False) -> Shortlist:
    """The likeliest targets of each source subword.

    joint: both sides have one vocabulary, so a source's own subwords are candidates: names are copied.
    """
    frequent = np.argsort(-lexicon.counts, kind="stable")[:FREQUENT]
    always = np.unique(np.concatenate([np.arange(END + 1), frequent]))
    table = np.full((source_vocabulary, CANDIDATES), -1, np.int32)
    _best(table, lexicon.source, lexicon.target, lexicon.chances)
    if joint:
        itself = np.arange(source_vocabulary, dtype=np.int32)
        absent = ~(table == itself[:, None]).any(1)
        table[absent, -1] = itself[absent]
    return Shortlist(table, always.astype(np.int32))


def _best(
    table: NDArray[np.int32], left: NDArray[np.int64], right: NDArray[np.int64], chances: NDArray[np.float64]
) -> None:
    """The likeliest of each source subword into its row."""
    order = np.lexsort((right, -chances, left))
    left, right = left[order], right[order]
    starts = np.flatnonzero(np.r_[True, left[1:] != left[:-1]])
    rank = np.arange(len(left)) - np.repeat(starts, np.diff(np.r_[starts, len(left)]))
    kept = rank < table.shape[1]
    table[left[kept], rank[kept]] = right[kept]
