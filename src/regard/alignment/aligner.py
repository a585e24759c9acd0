"""Which source word a target word comes from, by attention. Imports no PyTorch."""

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from regard.alignment.alignment_head import AlignmentHead, Weights
from regard.alignment.lexicon import Lexicon
from regard.data.word_links import word_indices

Links = set[tuple[int, int]]
SYMMETRIES = ("grow-diag-final-and", "intersection", "union")
NEIGHBOURS = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if (down, right) != (0, 0)]
UNSEEN = 1e-6  # the chance of a pair of subwords that the lexicon has never seen


def word_alignment(
    cross: Sequence[Weights], source: Sequence[str], target: Sequence[str], choice: AlignmentHead | None = None
) -> list[tuple[int, int]]:
    """(source word, target word), from 0, by target word.

    cross: [H, Tt, Ts] of each layer, over these pieces, both with their ends. A word's pieces are summed.
    """
    if not cross or len(source) < 2 or len(target) < 2:
        return []
    weights = (choice or AlignmentHead.default(cross)).of(cross)[:-1, :-1]  # without the ends
    rows, columns = word_indices(target[:-1]), word_indices(source[:-1])
    together = np.zeros((rows[-1] + 1, columns[-1] + 1))
    np.add.at(together, (np.array(rows)[:, None], np.array(columns)[None, :]), weights)
    return [(int(row.argmax()), word) for word, row in enumerate(together)]


def choices(heads: Sequence[int]) -> list[AlignmentHead]:
    """Everywhere an alignment may be seen, for the numbers of heads of each layer."""
    places = [
        (layer, head) for layer, count in enumerate(heads) for head in (None, *(range(count) if count > 1 else ()))
    ]
    return [AlignmentHead(layer, head, shifted) for (layer, head), shifted in product(places, (False, True))]


def best_choice(
    seen: Iterable[tuple[Sequence[int], Sequence[int], Sequence[Weights]]], lexicon: Lexicon
) -> tuple[AlignmentHead | None, dict[AlignmentHead, float]]:
    """Where a model's alignment is seen best, found without any alignment to learn from; and how good each place is.

    seen: tokens of sources and targets with their ends, and the weights of each layer over them. Of each place it is
    asked how well its weights and the lexicon together explain the targets: the mean log of the chance that a word
    comes of what was looked at. None for models that do not attend.
    """
    totals: dict[AlignmentHead, float] = {}
    count = 0
    for source, target, cross in seen:
        if not cross or len(source) < 2 or len(target) < 2:
            continue
        chances = np.maximum(lexicon.of(source[:-1], target[:-1]), UNSEEN)
        count += len(target) - 1
        for choice in choices([len(layer) for layer in cross]):
            weights = choice.of(cross)[:-1, :-1].astype(np.float64)
            totals[choice] = totals.get(choice, 0.0) + float(np.log(_explained(weights, chances)).sum())
    if not totals:
        return None, {}
    means = {choice: total / count for choice, total in totals.items()}
    return max(means, key=lambda choice: means[choice]), means


def _explained(weights: NDArray[np.float64], chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """[target]: the chance of each word to come of where it looks; of anywhere, if it looks nowhere."""
    total = weights.sum(1, keepdims=True)
    shares = np.where(total > 0, weights / np.where(total > 0, total, 1), 1 / weights.shape[1])
    found: NDArray[np.float64] = (shares * chances).sum(1)
    return found


def pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """As in 0-0 1-2: source-target."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def symmetrised(forward: Iterable[tuple[int, int]], backward: Iterable[tuple[int, int]], how: str) -> Links:
    """Links that two directions agree on, both counted (source, target): `how` is one of SYMMETRIES.

    grow-diag-final-and: Koehn et al. 2005. From what both say, neighbours of links are added where one says so and a
    word is still free; then what one says of two free words.
    """
    one, other = set(forward), set(backward)
    both, either = one & other, one | other
    if how == "intersection":
        return both
    if how == "union":
        return either
    found = set(both)
    sources, targets = {source for source, _ in found}, {target for _, target in found}

    def add(link: tuple[int, int]) -> None:
        found.add(link)
        sources.add(link[0])
        targets.add(link[1])

    growing = True
    while growing:
        growing = False
        for source, target in sorted(found):
            for link in ((source + down, target + right) for down, right in NEIGHBOURS):
                if link in either and link not in found and (link[0] not in sources or link[1] not in targets):
                    add(link)
                    growing = True
    for direction in (one, other):
        for link in sorted(direction):
            if link not in found and link[0] not in sources and link[1] not in targets:
                add(link)
    return found
