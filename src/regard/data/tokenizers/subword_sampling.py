"""Cutting words at random: BPE-dropout and unigram sampling, as pure functions of a key.

Provilkov et al. 2020 (arXiv:1910.13267): every merge is left out with some probability. Kudo 2018 (arXiv:1804.10959): a
segmentation is drawn with probability proportional to p(pieces)^alpha. sentencepiece samples too, but its dice differ
from process to process, and a resumed run must see what the first one would have seen.

A word has `VARIANTS` random segmentations, made when first met and kept; which one is used at each place is drawn anew.
"""

import math
import random
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

VARIANTS = 32
REMEMBERED = 1 << 18  # segmentations kept at once
SPACE = "▁"


class Sampler:
    """Samples segmentations over one vocabulary of pieces with scores (log-probabilities, or ranks of merges)."""

    def __init__(
        self, pieces: dict[str, tuple[int, float]], bytes_at: Sequence[int], *, merges: bool, rate: float
    ) -> None:
        self._pieces, self._bytes, self._merges, self._rate = pieces, bytes_at, merges, rate
        self._longest = max(map(len, pieces), default=1)
        self._worst = min((score for _, score in pieces.values()), default=0.0)
        self._variant = lru_cache(REMEMBERED)(self._cut)

    def sample(self, texts: Sequence[str], key: int) -> list[list[int]]:
        """Tokens of each text, cut as the key says."""
        words = [[SPACE + word for word in text.split(" ") if word] for text in texts]
        count = sum(map(len, words))
        which = iter(np.random.Generator(np.random.Philox(key & ((1 << 64) - 1))).integers(0, VARIANTS, count).tolist())
        return [[token for word in each for token in self._variant(word, next(which))] for each in words]

    def _cut(self, word: str, variant: int) -> list[int]:
        dice = random.Random(f"{variant} {word}")
        parts = self._merged(word, dice) if self._merges else self._drawn(word, dice)
        tokens: list[int] = []
        for part in parts:
            if part in self._pieces:
                tokens.append(self._pieces[part][0])
            else:
                tokens += [self._bytes[byte] for byte in part.encode("utf-8")]
        return tokens

    def _merged(self, word: str, dice: random.Random) -> list[str]:
        """BPE-dropout: of the merges that are not left out this time, the one learnt first, until none is left."""
        parts = list(word)
        while True:
            best, at = -math.inf, -1
            for place in range(len(parts) - 1):
                known = self._pieces.get(parts[place] + parts[place + 1])
                if known is not None and known[1] > best and dice.random() >= self._rate:
                    best, at = known[1], place
            if at < 0:
                return parts
            parts[at : at + 2] = [parts[at] + parts[at + 1]]

    def _drawn(self, word: str, dice: random.Random) -> list[str]:
        """Unigram: sums over all segmentations from the left, then pieces drawn from the right."""
        scores: list[list[tuple[int, float]]] = [[] for _ in range(len(word) + 1)]  # (start, log weight) by end
        totals = [0.0] + [-math.inf] * len(word)
        for end in range(1, len(word) + 1):
            for start in range(max(0, end - self._longest), end):
                known = self._pieces.get(word[start:end])
                if known is None and end - start > 1:
                    continue
                score = known[1] if known is not None else self._worst - 10.0  # a letter in bytes: the last resort
                scores[end].append((start, totals[start] + self._rate * score))
            top = max(weight for _, weight in scores[end])
            totals[end] = top + math.log(sum(math.exp(weight - top) for _, weight in scores[end]))
        parts: list[str] = []
        end = len(word)
        while end:
            starts, weights = zip(*scores[end], strict=True)
            (start,) = dice.choices(starts, [math.exp(weight - totals[end]) for weight in weights])
            parts.append(word[start:end])
            end = start
        return parts[::-1]
