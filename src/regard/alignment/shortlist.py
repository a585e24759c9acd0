"""A vocabulary shortlist: for each source subword, its most likely target subwords. Imports no PyTorch.

Built from a lexicon of the training pairs. With it, the output layer has hundreds of entries instead of thousands. A
sentence's candidates are those of its source subwords, and the most frequent target subwords.
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
from regard.special_tokens import EOS

MAX_CANDIDATES = 300  # of each source subword: with 100, Multi30k lost 0.26 BLEU
FREQUENT_TOKENS = 150  # that are always candidates


@dataclass(frozen=True)
class Shortlist:
    """candidates [source vocabulary, n], padded with -1; always [m], sorted: candidates of every source."""

    candidates: NDArray[np.int32]
    always: NDArray[np.int32]

    def candidates_for(self, source: Sequence[int]) -> NDArray[np.int32]:
        """The candidate target tokens of these source tokens, sorted; special tokens are always among them."""
        is_candidate = np.zeros(self._max_token + 2, np.bool_)
        is_candidate[self.candidates[np.asarray(source, np.int64)]] = True
        is_candidate[self.always] = True
        is_candidate[: EOS + 1] = True
        return np.flatnonzero(is_candidate[:-1]).astype(np.int32)  # the last entry is that of the padding, -1

    @cached_property
    def _max_token(self) -> int:
        return int(max(self.candidates.max(initial=EOS), self.always.max(initial=EOS)))

    def to_bytes(self) -> bytes:
        """A safetensors file's content."""
        is_small = self._max_token <= np.iinfo(np.int16).max
        return save({"candidates": self.candidates.astype(np.int16 if is_small else np.int32), "always": self.always})


def load_shortlist(path: Path, *, source_vocabulary_size: int, target_vocabulary_size: int) -> Shortlist | None:
    """From a file; None if there is none. Raises RegardError if it is damaged or of another model."""
    if not path.exists():
        return None
    try:
        arrays = load_file(path)
        shortlist = Shortlist(arrays["candidates"].astype(np.int32), arrays["always"].astype(np.int32))
    except (OSError, SafetensorError, KeyError) as error:
        raise RegardError(f"{path}: it is damaged and cannot be read ({error}); remove it.") from None
    has_shape = (
        shortlist.candidates.ndim == 2
        and len(shortlist.candidates) == source_vocabulary_size
        and shortlist.always.ndim == 1
    )
    largest = max(int(array.max(initial=-1)) for array in (shortlist.candidates, shortlist.always))
    smallest = min(int(array.min(initial=0)) for array in (shortlist.candidates, shortlist.always))
    if not has_shape or largest >= target_vocabulary_size or smallest < -1:
        raise RegardError(f"{path}: it belongs to another model; remove it.")
    return shortlist


def build_shortlist(lexicon: Lexicon, *, source_vocabulary_size: int, joint: bool = False) -> Shortlist:
    """The most likely target subwords of each source subword.

    joint: source and target have one vocabulary, so a source subword is a candidate itself: names are copied.
    """
    frequent = np.argsort(-lexicon.counts, kind="stable")[:FREQUENT_TOKENS]
    always = np.unique(np.concatenate([np.arange(EOS + 1), frequent]))
    table = np.full((source_vocabulary_size, MAX_CANDIDATES), -1, np.int32)
    _fill_most_likely(table, lexicon)
    if joint:
        own = np.arange(source_vocabulary_size, dtype=np.int32)
        is_absent = ~(table == own[:, None]).any(1)
        table[is_absent, -1] = own[is_absent]
    return Shortlist(table, always.astype(np.int32))


def _fill_most_likely(table: NDArray[np.int32], lexicon: Lexicon) -> None:
    """Write the most likely target subwords of each source subword into its row of the table."""
    order = np.lexsort((lexicon.target, -lexicon.probabilities, lexicon.source))
    source, target = lexicon.source[order], lexicon.target[order]
    starts = np.flatnonzero(np.r_[True, source[1:] != source[:-1]])
    rank = np.arange(len(source)) - np.repeat(starts, np.diff(np.r_[starts, len(source)]))
    is_kept = rank < table.shape[1]
    table[source[is_kept], rank[is_kept]] = target[is_kept]
