"""A lexicon: how likely a target subword is to come of a source subword. Imports no PyTorch.

Learnt from pairs by IBM Model 1 (Brown et al. 1993), which needs no alignment and no model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROUNDS = 5  # of expectation and maximisation
MOST = 10_000_000  # pairs of subwords that are looked at, which needs about half a gigabyte


@dataclass(frozen=True)
class Lexicon:
    """Pairs of subwords that occur together, sorted: source [n], target [n], chances [n] of target given source.

    counts [target vocabulary]: how often each target subword occurs.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    chances: NDArray[np.float64]
    counts: NDArray[np.int64]

    def of(self, source: Sequence[int], target: Sequence[int]) -> NDArray[np.float64]:
        """[target, source]: the chance of each target subword to come of each source subword; 0 if never seen."""
        wanted = np.asarray(source, np.int64)[None] * len(self.counts) + np.asarray(target, np.int64)[:, None]
        keys = self.source * len(self.counts) + self.target
        at = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
        return np.where(keys[at] == wanted, self.chances[at], 0.0) if len(keys) else np.zeros(wanted.shape)


def learn(pairs: Iterable[tuple[Sequence[int], Sequence[int]]], *, target_vocabulary: int, most: int = MOST) -> Lexicon:
    """From tokens of sources and targets, each with its end. Of many, the first ones, with `most` pairs of subwords."""
    lefts: list[NDArray[np.int64]] = []
    owners: list[NDArray[np.int64]] = []  # for each left, which place in which target it may explain
    rights: list[NDArray[np.int64]] = []
    places = size = 0
    counts = np.zeros(target_vocabulary, np.int64)
    for source, target in pairs:
        s, t = np.unique(np.asarray(source, np.int64)), np.asarray(target, np.int64)
        counts += np.bincount(t, minlength=target_vocabulary)
        lefts.append(np.tile(s, len(t)))
        rights.append(np.repeat(t, len(s)))
        owners.append(np.repeat(np.arange(places, places + len(t)), len(s)))
        places += len(t)
        size += len(s) * len(t)
        if size > most:
            break
    if not lefts:
        nothing = np.zeros(0, np.int64)
        return Lexicon(nothing, nothing, np.zeros(0), counts)
    keys, which = np.unique(np.concatenate(lefts) * target_vocabulary + np.concatenate(rights), return_inverse=True)
    chances = _explained(which, np.concatenate(owners), keys // target_vocabulary, places)
    return Lexicon(keys // target_vocabulary, keys % target_vocabulary, chances, counts)


def _explained(
    which: NDArray[np.int64], owner: NDArray[np.int64], left: NDArray[np.int64], places: int
) -> NDArray[np.float64]:
    """p(target subword | source subword) of each pair of subwords that occurs."""
    chances = np.ones(len(left))
    for _ in range(ROUNDS):
        share = chances[which]
        share /= np.bincount(owner, share, places)[owner]
        expected = np.bincount(which, share, len(left))
        chances = expected / np.bincount(left, expected)[left]
    return chances
