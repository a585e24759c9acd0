"""The exponent p of a cost that grows as size^p: a straight line through the logarithms.

A cost is a sum of powers, and textbooks give the dominant one. So the fit uses the largest sizes only. Its interval is
that of fits to resampled rounds (the bootstrap). It does not show whether the line is straight;
`Curve.local_exponents` does.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

FITTED_SIZES = 4  # sizes at the upper end that a fit goes through
RESAMPLES = 1000


@dataclass(frozen=True)
class Fit:
    """An exponent, and the interval of nine out of ten fits to resampled rounds."""

    exponent: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.exponent:.2f} ±{max(self.high - self.exponent, self.exponent - self.low):.2f}"


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The slope of the line through the logarithms, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def fit_exponent(sizes: Sequence[int], rounds: Sequence[Sequence[float]], *, upper: int = FITTED_SIZES) -> Fit:
    """`rounds` [rounds, sizes] of one sweep -> the exponent of their medians over the `upper` largest sizes."""
    largest, costs = list(sizes)[-upper:], np.asarray(rounds, dtype=float)[:, -upper:]
    generator = np.random.default_rng(0)
    resampled_rounds = generator.integers(len(costs), size=(RESAMPLES, len(costs)))
    exponents = (
        [slope(largest, np.median(costs[rows], axis=0).tolist()) for rows in resampled_rounds] if len(costs) > 1 else []
    )
    exponent = slope(largest, np.median(costs, axis=0).tolist())
    low, high = np.quantile(exponents, [0.05, 0.95]) if exponents else (exponent, exponent)
    return Fit(exponent, min(exponent, float(low)), max(exponent, float(high)))


@dataclass(frozen=True)
class Curve:
    """One quantity of one layer against n, d, k or r."""

    layer: str
    axis: str
    what: str  # forward, both (seconds); forward memory, both memory (bytes); steps; path
    at: str  # the other sizes, which are constant
    sizes: list[int]
    values: list[float]  # medians
    fit: Fit

    @classmethod
    def from_rounds(
        cls, layer: str, axis: str, what: str, at: str, sizes: Sequence[int], rounds: Sequence[Sequence[float]]
    ) -> Self:
        """From the measurement of every round at every size."""
        medians = [float(statistics.median(costs)) for costs in zip(*rounds, strict=True)]
        return cls(layer, axis, what, at, list(sizes), medians, fit_exponent(sizes, rounds))

    def local_exponents(self) -> list[float]:
        """The exponent from each size to the next."""
        return [slope(self.sizes[i : i + 2], self.values[i : i + 2]) for i in range(len(self.sizes) - 1)]


def crossover(first: Curve, second: Curve) -> float | None:
    """The size from which `first` costs more than `second`, between two measured ones; None if there is none."""
    log_ratios = [math.log(a / b) for a, b in zip(first.values, second.values, strict=True)]
    for i in reversed(range(len(log_ratios) - 1)):
        if log_ratios[i] <= 0 < log_ratios[i + 1]:
            log_low, log_high = map(math.log, first.sizes[i : i + 2])
            return math.exp(log_low + (log_high - log_low) * log_ratios[i] / (log_ratios[i] - log_ratios[i + 1]))
    return None
