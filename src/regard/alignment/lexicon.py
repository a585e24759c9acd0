"""A lexicon: the probability of each target subword given a source subword. Imports no PyTorch.

Estimated from pairs by IBM Model 1 (Brown et al. 1993), which needs no alignments and no neural model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

EM_ITERATIONS = 5
MAX_COOCCURRENCES = 10_000_000  # of pairs of subwords; they take about half a gigabyte of memory


@dataclass(frozen=True)
class Lexicon:
    """Pairs of subwords that occur together, sorted: source [n], target [n], probabilities [n] of target given source.

    counts [target vocabulary]: how often each target subword occurs.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    counts: NDArray[np.int64]

    def lookup(self, source: Sequence[int], target: Sequence[int]) -> NDArray[np.float64]:
        """[target, source]: the probability of each target subword given each source subword; 0 for unknown pairs."""
        pair_keys = np.asarray(source, np.int64)[None] * len(self.counts) + np.asarray(target, np.int64)[:, None]
        keys = self.source * len(self.counts) + self.target
        at = np.minimum(np.searchsorted(keys, pair_keys), max(0, len(keys) - 1))
        return np.where(keys[at] == pair_keys, self.probabilities[at], 0.0) if len(keys) else np.zeros(pair_keys.shape)


def learn_lexicon(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
    *,
    target_vocabulary_size: int,
    max_cooccurrences: int = MAX_COOCCURRENCES,
) -> Lexicon:
    """IBM Model 1 of tokens of sources and targets, both with the end-of-sequence token. Pairs after the first
    `max_cooccurrences` pairs of subwords are ignored."""
    sources: list[NDArray[np.int64]] = []
    positions: list[NDArray[np.int64]] = []  # the target position that each cooccurrence belongs to, over all pairs
    targets: list[NDArray[np.int64]] = []
    position_count = size = 0
    counts = np.zeros(target_vocabulary_size, np.int64)
    for source, target in pairs:
        s, t = np.unique(np.asarray(source, np.int64)), np.asarray(target, np.int64)
        counts += np.bincount(t, minlength=target_vocabulary_size)
        sources.append(np.tile(s, len(t)))
        targets.append(np.repeat(t, len(s)))
        positions.append(np.repeat(np.arange(position_count, position_count + len(t)), len(s)))
        position_count += len(t)
        size += len(s) * len(t)
        if size > max_cooccurrences:
            break
    if not sources:
        empty = np.zeros(0, np.int64)
        return Lexicon(empty, empty, np.zeros(0), counts)
    keys, pair = np.unique(
        np.concatenate(sources) * target_vocabulary_size + np.concatenate(targets), return_inverse=True
    )
    source_of_pair, target_of_pair = keys // target_vocabulary_size, keys % target_vocabulary_size
    probabilities = _expectation_maximization(pair, np.concatenate(positions), source_of_pair, position_count)
    return Lexicon(source_of_pair, target_of_pair, probabilities, counts)


def _expectation_maximization(
    pair: NDArray[np.int64], position: NDArray[np.int64], source_of_pair: NDArray[np.int64], position_count: int
) -> NDArray[np.float64]:
    """p(target subword | source subword) of each distinct pair of subwords.

    pair, position [cooccurrences]: the distinct pair and the target position of each. source_of_pair [pairs].
    """
    probabilities = np.ones(len(source_of_pair))
    for _ in range(EM_ITERATIONS):
        posterior = probabilities[pair]
        posterior /= np.bincount(position, posterior, position_count)[position]
        expected_counts = np.bincount(pair, posterior, len(source_of_pair))
        probabilities = expected_counts / np.bincount(source_of_pair, expected_counts)[source_of_pair]
    return probabilities
