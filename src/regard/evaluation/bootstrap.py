"""Whether one system is better than another, or it only looks so: paired bootstrap resampling (Koehn 2004).

The same random sets of test sentences are scored for both systems; the share of sets in which the second does not win
is the p-value. BLEU and chrF are recomputed from sentence statistics, so a thousand sets take moments.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.evaluation.cider import cider
from regard.evaluation.metrics import (
    BY_SACREBLEU,
    BY_SETS,
    PER_SENTENCE,
    References,
    _sacrebleu,
    corpus_score,
    nearest,
)

DRAWS = 1000


@dataclass(frozen=True)
class Comparison:
    """Two systems on one test set, by one measure."""

    measure: str
    first: float
    second: float
    interval: tuple[float, float]  # 95 % of the differences, second minus first
    p: float  # the share of resampled sets in which the better one did not win


def compare(
    measure: str,
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    *,
    tokenize: str | None = None,
    draws: int = DRAWS,
    seed: int = 12345,
) -> Comparison:
    """Paired bootstrap of the difference between two systems' outputs."""
    values = [corpus_score(measure, outputs, references, tokenize).value for outputs in (first, second)]
    scores = [_resampler(measure, outputs, references, tokenize) for outputs in (first, second)]
    dice = np.random.default_rng(seed)
    sets = dice.integers(0, len(first), (draws, len(first)))
    differences = np.array([scores[1](chosen) - scores[0](chosen) for chosen in sets])
    better = 1 if corpus_score(measure, first, references, tokenize).higher_is_better else -1
    sign = better if better * (values[1] - values[0]) >= 0 else -better
    lost = float(np.mean(sign * differences <= 0))
    low, high = (float(edge) for edge in np.percentile(differences, [2.5, 97.5]))
    return Comparison(measure, values[0], values[1], (low, high), lost)


def _resampler(
    measure: str, outputs: Sequence[str], references: References, tokenize: str | None
) -> Callable[[NDArray[np.int64]], float]:
    """A function from sentence numbers to the score of that set."""
    if measure in BY_SACREBLEU:
        metric: Any = _sacrebleu(measure, tokenize)
        rows = metric._extract_corpus_statistics(list(outputs), [list(each) for each in references])
        statistics = np.array(rows, dtype=np.float64)
        return lambda chosen: float(metric._compute_score_from_stats(statistics[chosen].sum(0).tolist()).score)
    several = list(zip(*references, strict=True))
    if measure in ("wer", "cer"):  # a rate over the whole set: edits and lengths are summed apart
        counts = np.array([nearest(o, rs, words=measure == "wer") for o, rs in zip(outputs, several, strict=True)])
        return lambda chosen: float(100 * counts[chosen, 0].sum() / max(1, counts[chosen, 1].sum()))
    if measure == "cider":  # with the rarity of words in the whole set
        own = np.array(cider(outputs, references))
        return lambda chosen: float(100 * own[chosen].mean())
    if measure in BY_SETS:
        said, right = np.array(outputs, object), np.array(references[0], object)
        return lambda chosen: 100 * BY_SETS[measure][0](said[chosen].tolist(), right[chosen].tolist())
    function, _ = PER_SENTENCE[measure]
    each = np.array([max(function(o, r) for r in rs) for o, rs in zip(outputs, several, strict=True)])
    return lambda chosen: float(100 * each[chosen].mean())
