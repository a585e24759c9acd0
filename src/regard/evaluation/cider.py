"""CIDEr-D: how much an output says what most references of it say, and references of others do not
(Vedantam et al. 2015, arXiv:1411.5726)."""

import math
from collections import Counter
from collections.abc import Sequence

ORDERS = 4  # groups of one to so many words
SIGMA = 6.0  # words by which lengths may differ before it costs much

Groups = Counter[tuple[str, ...]]


def cider(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """Of each output, ten at most; references[k][i] is the k-th reference of output i. Words are what blanks separate.

    What all references say counts for nothing, so one sentence alone cannot be judged.
    """
    several = [[_groups(text) for text in each] for each in zip(*references, strict=True)]
    there: Groups = Counter()
    for each in several:
        there.update({group for groups in each for group in groups})
    rarity = {group: math.log(len(outputs)) - math.log(count) for group, count in there.items()}
    unseen = math.log(len(outputs)) if outputs else 0.0

    def weighed(groups: Groups) -> list[dict[tuple[str, ...], float]]:
        found: list[dict[tuple[str, ...], float]] = [{} for _ in range(ORDERS)]
        for group, count in groups.items():
            found[len(group) - 1][group] = count * rarity.get(group, unseen)
        return found

    scores = []
    for output, each in zip(outputs, several, strict=True):
        own, length = weighed(_groups(output)), len(output.split())
        total = 0.0
        for groups in each:
            other = weighed(groups)
            words = sum(count for group, count in groups.items() if len(group) == 1)
            near = math.exp(-((length - words) ** 2) / (2 * SIGMA**2))
            total += near * sum(map(_alike, own, other)) / ORDERS
        scores.append(10 * total / len(each))
    return scores


def _groups(text: str) -> Groups:
    words = text.split()
    return Counter(
        tuple(words[at : at + order]) for order in range(1, ORDERS + 1) for at in range(len(words) - order + 1)
    )


def _alike(one: dict[tuple[str, ...], float], other: dict[tuple[str, ...], float]) -> float:
    """The cosine between them, what an output says more often than its reference counted as often as there."""
    sizes = math.hypot(*one.values()) * math.hypot(*other.values())
    return sum(min(weight, other.get(group, 0.0)) * other.get(group, 0.0) for group, weight in one.items()) / (
        sizes or math.inf
    )
