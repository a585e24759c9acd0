"""CIDEr-D: n-grams that an output shares with its references and that references of other inputs do not have
(Vedantam et al. 2015, arXiv:1411.5726)."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from regard.evaluation.metrics import METRICS, OutputMetric, References, Statistics

MAX_NGRAM_ORDER = 4
SIGMA = 6.0  # of the Gaussian length penalty, in words

Ngrams = Counter[tuple[str, ...]]
Weights = dict[tuple[str, ...], float]


def cider(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """The score of each output, ten at most; references[k][i] is the k-th reference of output i. White space separates
    words.

    An n-gram that is in the references of all inputs counts for nothing, so one sentence alone cannot be scored.
    """
    reference_ngrams = [[_ngrams(text) for text in each] for each in zip(*references, strict=True)]
    document_frequency: Ngrams = Counter()
    for each in reference_ngrams:
        document_frequency.update({ngram for ngrams in each for ngram in ngrams})
    idf = {ngram: math.log(len(outputs)) - math.log(count) for ngram, count in document_frequency.items()}
    max_idf = math.log(len(outputs)) if outputs else 0.0

    def tf_idf(ngrams: Ngrams) -> list[Weights]:
        by_order: list[Weights] = [{} for _ in range(MAX_NGRAM_ORDER)]
        for ngram, count in ngrams.items():
            by_order[len(ngram) - 1][ngram] = count * idf.get(ngram, max_idf)
        return by_order

    scores = []
    for output, each in zip(outputs, reference_ngrams, strict=True):
        weights, length = tf_idf(_ngrams(output)), len(output.split())
        total = 0.0
        for ngrams in each:
            words = sum(count for ngram, count in ngrams.items() if len(ngram) == 1)
            length_penalty = math.exp(-((length - words) ** 2) / (2 * SIGMA**2))
            total += length_penalty * sum(map(_clipped_cosine, weights, tf_idf(ngrams))) / MAX_NGRAM_ORDER
        scores.append(10 * total / len(each))
    return scores


def _ngrams(text: str) -> Ngrams:
    words = text.split()
    return Counter(
        tuple(words[at : at + order]) for order in range(1, MAX_NGRAM_ORDER + 1) for at in range(len(words) - order + 1)
    )


def _clipped_cosine(output: Weights, reference: Weights) -> float:
    """The cosine between them; an output's n-gram counts at most as often as in the reference."""
    norms = math.hypot(*output.values()) * math.hypot(*reference.values())
    return sum(
        min(weight, reference.get(ngram, 0.0)) * reference.get(ngram, 0.0) for ngram, weight in output.items()
    ) / (norms or math.inf)


@METRICS.register("cider")
class Cider(OutputMetric):
    """The mean over sentences, times 100. Resampled sets keep the document frequencies of the whole set."""

    summary = "CIDEr-D: n-grams weighted by how rare they are"
    task = "captioning"
    higher_is_better = True

    def statistics(self, outputs: Sequence[str], references: References) -> Statistics:
        return np.array(cider(outputs, references), dtype=np.float64)[:, None]

    def from_statistics(self, rows: Statistics) -> float:
        return float(100 * rows[:, 0].mean())

    def signature(self, references: References) -> str:
        return "CIDEr-D, times 100; words between blanks"
