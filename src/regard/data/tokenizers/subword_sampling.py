"""Random segmentations of words: BPE-dropout and unigram sampling, as pure functions of a key.

Provilkov et al. 2020 (arXiv:1910.13267): every merge is dropped with some probability. Kudo 2018 (arXiv:1804.10959): a
segmentation is drawn with probability proportional to p(pieces)^alpha. sentencepiece samples too, but its random
numbers differ from process to process, and a resumed run must have the same segmentations.

A word has `VARIANTS` random segmentations, computed at its first occurrence and cached; each occurrence draws one.
"""

import math
import random
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from regard.data.tokenizers.tokenizer import SPACE

VARIANTS = 32
CACHED_SEGMENTATIONS = 1 << 18


class SubwordSampler:
    """Samples segmentations over one vocabulary of pieces with scores (log-probabilities, or ranks of merges)."""

    def __init__(
        self, pieces: dict[str, tuple[int, float]], bytes_at: Sequence[int], *, merges: bool, rate: float
    ) -> None:
        self._pieces, self._bytes, self._merges, self._rate = pieces, bytes_at, merges, rate
        self._max_length = max(map(len, pieces), default=1)
        self._min_score = min((score for _, score in pieces.values()), default=0.0)
        self._cached_segment = lru_cache(CACHED_SEGMENTATIONS)(self._segment)

    def sample(self, texts: Sequence[str], key: int) -> list[list[int]]:
        """Tokens of each text, segmented at random as a function of the key."""
        words = [[SPACE + word for word in text.split(" ") if word] for text in texts]
        count = sum(map(len, words))
        variants = iter(
            np.random.Generator(np.random.Philox(key & ((1 << 64) - 1))).integers(0, VARIANTS, count).tolist()
        )
        return [[token for word in each for token in self._cached_segment(word, next(variants))] for each in words]

    def _segment(self, word: str, variant: int) -> list[int]:
        rng = random.Random(f"{variant} {word}")
        pieces = self._bpe_dropout(word, rng) if self._merges else self._unigram_sample(word, rng)
        tokens: list[int] = []
        for piece in pieces:
            if piece in self._pieces:
                tokens.append(self._pieces[piece][0])
            else:
                tokens += [self._bytes[byte] for byte in piece.encode("utf-8")]
        return tokens

    def _bpe_dropout(self, word: str, rng: random.Random) -> list[str]:
        """Of the merges that are not dropped this time, the one learned first, until none is left."""
        pieces = list(word)
        while True:
            best, at = -math.inf, -1
            for position in range(len(pieces) - 1):
                known = self._pieces.get(pieces[position] + pieces[position + 1])
                if known is not None and known[1] > best and rng.random() >= self._rate:
                    best, at = known[1], position
            if at < 0:
                return pieces
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]

    def _unigram_sample(self, word: str, rng: random.Random) -> list[str]:
        """Forward filtering, backward sampling: sums over all segmentations, then pieces drawn from the right."""
        scores: list[list[tuple[int, float]]] = [[] for _ in range(len(word) + 1)]  # (start, log weight) by end
        totals = [0.0] + [-math.inf] * len(word)
        for end in range(1, len(word) + 1):
            for start in range(max(0, end - self._max_length), end):
                known = self._pieces.get(word[start:end])
                if known is None and end - start > 1:
                    continue
                score = (
                    known[1] if known is not None else self._min_score - 10.0
                )  # a character as bytes: the last resort
                scores[end].append((start, totals[start] + self._rate * score))
            top = max(weight for _, weight in scores[end])
            totals[end] = top + math.log(sum(math.exp(weight - top) for _, weight in scores[end]))
        pieces: list[str] = []
        end = len(word)
        while end:
            starts, weights = zip(*scores[end], strict=True)
            (start,) = rng.choices(starts, [math.exp(weight - totals[end]) for weight in weights])
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]
