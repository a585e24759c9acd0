"""Word alignment by cross-attention, the choice of the head that aligns best, symmetrization. Imports no PyTorch."""

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from regard.alignment.alignment_head import AlignmentHead, Weights
from regard.alignment.lexicon import Lexicon
from regard.data.word_links import word_indices

Links = set[tuple[int, int]]
SYMMETRIZATIONS = ("grow-diag-final-and", "intersection", "union")
NEIGHBORS = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if (down, right) != (0, 0)]
MIN_PROBABILITY = 1e-6  # of a pair of subwords that the lexicon does not have


def word_alignment(
    cross: Sequence[Weights], source: Sequence[str], target: Sequence[str], head: AlignmentHead | None = None
) -> list[tuple[int, int]]:
    """Links (source word, target word), from 0, by target word.

    cross: [H, Tt, Ts] of each layer, over these pieces, both with the end-of-sequence token. The weights of a word's
    pieces are summed. head: the head to use, by default `AlignmentHead.default`.
    """
    if not cross or len(source) < 2 or len(target) < 2:
        return []
    weights = (head or AlignmentHead.default(cross)).select(cross)[:-1, :-1]  # without the end-of-sequence tokens
    rows, columns = word_indices(target[:-1]), word_indices(source[:-1])
    by_word = np.zeros((rows[-1] + 1, columns[-1] + 1))
    np.add.at(by_word, (np.array(rows)[:, None], np.array(columns)[None, :]), weights)
    return [(int(row.argmax()), word) for word, row in enumerate(by_word)]


def candidate_heads(heads: Sequence[int]) -> list[AlignmentHead]:
    """All heads that may align, and the mean of each layer's. heads: the number of heads of each layer."""
    candidates = [
        (layer, head) for layer, count in enumerate(heads) for head in (None, *(range(count) if count > 1 else ()))
    ]
    return [AlignmentHead(layer, head, shifted) for (layer, head), shifted in product(candidates, (False, True))]


def find_alignment_head(
    examples: Iterable[tuple[Sequence[int], Sequence[int], Sequence[Weights]]], lexicon: Lexicon
) -> tuple[AlignmentHead | None, dict[AlignmentHead, float]]:
    """The head that aligns best, found without gold alignments, and the score of each candidate.

    examples: tokens of sources and targets, both with the end-of-sequence token, and each layer's weights over them.
    A candidate's score is the mean log-probability of the target tokens, where attention selects a source token and
    the lexicon translates it. None for models without cross-attention.
    """
    totals: dict[AlignmentHead, float] = {}
    count = 0
    for source, target, cross in examples:
        if not cross or len(source) < 2 or len(target) < 2:
            continue
        probabilities = np.maximum(lexicon.lookup(source[:-1], target[:-1]), MIN_PROBABILITY)
        count += len(target) - 1
        for head in candidate_heads([len(layer) for layer in cross]):
            weights = head.select(cross)[:-1, :-1].astype(np.float64)
            totals[head] = totals.get(head, 0.0) + float(np.log(_target_probabilities(weights, probabilities)).sum())
    if not totals:
        return None, {}
    means = {head: total / count for head, total in totals.items()}
    return max(means, key=lambda head: means[head]), means


def _target_probabilities(
    weights: NDArray[np.float64], translation_probabilities: NDArray[np.float64]
) -> NDArray[np.float64]:
    """[target]: the probability of each target token, from two arrays [target, source]. A row of weights that are all 0
    counts as uniform."""
    total = weights.sum(1, keepdims=True)
    normalized = np.where(total > 0, weights / np.where(total > 0, total, 1), 1 / weights.shape[1])
    probabilities: NDArray[np.float64] = (normalized * translation_probabilities).sum(1)
    return probabilities


def pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Links in the Pharaoh format, source-target: 0-0 1-2."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def symmetrize(forward: Iterable[tuple[int, int]], backward: Iterable[tuple[int, int]], method: str) -> Links:
    """The links of two directions combined; both are (source, target). method: one of SYMMETRIZATIONS.

    grow-diag-final-and: Koehn et al. 2005. Starts from the intersection. Adds links of the union that neighbor a link
    and have an unaligned word, then links of either direction whose words are both unaligned.
    """
    forward, backward = set(forward), set(backward)
    intersection, union = forward & backward, forward | backward
    if method == "intersection":
        return intersection
    if method == "union":
        return union
    found = set(intersection)
    sources, targets = {source for source, _ in found}, {target for _, target in found}

    def add(link: tuple[int, int]) -> None:
        found.add(link)
        sources.add(link[0])
        targets.add(link[1])

    growing = True
    while growing:
        growing = False
        for source, target in sorted(found):
            for link in ((source + down, target + right) for down, right in NEIGHBORS):
                if link in union and link not in found and (link[0] not in sources or link[1] not in targets):
                    add(link)
                    growing = True
    for direction in (forward, backward):
        for link in sorted(direction):
            if link not in found and link[0] not in sources and link[1] not in targets:
                add(link)
    return found
