"""Significance of the difference between two systems: paired bootstrap resampling (Koehn 2004).

The same random samples of test sentences are scored for both systems; the p-value is the share of samples in which the
better one does not win. Metrics compute scores from statistics of sentences, so a thousand samples are fast.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.evaluation.metrics import References, checked_references, output_metric

RESAMPLES = 1000


@dataclass(frozen=True)
class Comparison:
    """Two systems on one test set, by one metric."""

    metric: str
    first: float
    second: float
    interval: tuple[float, float]  # 95 % of the differences, second minus first
    p: float  # the share of samples in which the better system did not win


def compare_outputs(
    metric_name: str,
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    *,
    tokenize: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 12345,
) -> Comparison:
    """Paired bootstrap of the difference between two systems' outputs."""
    metric = output_metric(metric_name, tokenize=tokenize)
    systems = [metric.statistics(outputs, checked_references(outputs, references)) for outputs in (first, second)]
    values = [metric.from_statistics(rows) for rows in systems]
    samples = np.random.default_rng(seed).integers(0, len(first), (resamples, len(first)))
    differences = np.array(
        [metric.from_statistics(systems[1][sample]) - metric.from_statistics(systems[0][sample]) for sample in samples]
    )
    # The direction of the observed difference; a tie counts as the second being better.
    difference = values[1] - values[0]
    direction = np.sign(difference) or metric.sort_key(1.0)
    p = float(np.mean(direction * differences <= 0))
    low, high = (float(edge) for edge in np.percentile(differences, [2.5, 97.5]))
    return Comparison(metric.name, values[0], values[1], (low, high), p)
