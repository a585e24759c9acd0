"""The exponent p of a cost that grows as size^p: a straight line through the logarithms.

A cost is a sum of powers, and a textbook names the one that wins in the end. So the line goes through the largest
sizes only. Its spread is that of fits to rounds drawn anew (the bootstrap). It knows nothing of whether the line is
straight; `Curve.between` does.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

UPPER = 4  # sizes at the upper end that a fit goes through
RESAMPLED = 1000


@dataclass(frozen=True)
class Fit:
    """An exponent, and the interval that holds nine of ten fits to rounds drawn anew."""

    exponent: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.exponent:.2f} ±{max(self.high - self.exponent, self.exponent - self.low):.2f}"


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Of the straight line through the logarithms, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def fitted(sizes: Sequence[int], rounds: Sequence[Sequence[float]], *, upper: int = UPPER) -> Fit:
    """`rounds` [rounds, sizes] of one ladder -> the exponent of their medians over the `upper` largest sizes."""
    largest, costs = list(sizes)[-upper:], np.asarray(rounds, dtype=float)[:, -upper:]
    dice = np.random.default_rng(0)
    drawn = dice.integers(len(costs), size=(RESAMPLED, len(costs)))
    again = [slope(largest, np.median(costs[rows], axis=0).tolist()) for rows in drawn] if len(costs) > 1 else []
    exponent = slope(largest, np.median(costs, axis=0).tolist())
    low, high = np.quantile(again, [0.05, 0.95]) if again else (exponent, exponent)
    return Fit(exponent, min(exponent, float(low)), max(exponent, float(high)))


@dataclass(frozen=True)
class Curve:
    """One quantity of one layer against n, d, k or r."""

    layer: str
    axis: str
    what: str  # forward, both (seconds); forward memory, both memory (bytes); steps; path
    at: str  # what stays as it is meanwhile
    sizes: list[int]
    values: list[float]  # medians
    fit: Fit

    @classmethod
    def of(
        cls, layer: str, axis: str, what: str, at: str, sizes: Sequence[int], rounds: Sequence[Sequence[float]]
    ) -> Self:
        """From what every round found at every size."""
        middle = [float(statistics.median(costs)) for costs in zip(*rounds, strict=True)]
        return cls(layer, axis, what, at, list(sizes), middle, fitted(sizes, rounds))

    def between(self) -> list[float]:
        """The exponent from each size to the next."""
        return [slope(self.sizes[at : at + 2], self.values[at : at + 2]) for at in range(len(self.sizes) - 1)]


def crossing(one: Curve, other: Curve) -> float | None:
    """The size from which on `one` costs more than `other`, between two that were measured; None if there is none."""
    apart = [math.log(a / b) for a, b in zip(one.values, other.values, strict=True)]
    for at in reversed(range(len(apart) - 1)):
        if apart[at] <= 0 < apart[at + 1]:
            left, right = map(math.log, one.sizes[at : at + 2])
            return math.exp(left + (right - left) * apart[at] / (apart[at] - apart[at + 1]))
    return None
