"""ROUGE: F1 of words, pairs of words or the longest common subsequence, in lower case (Lin 2004)."""

from collections import Counter

from regard.evaluation.metrics import METRICS, MeanMetric
from regard.evaluation.metrics._overlap import overlap_f1


def rouge_n(output: str, reference: str, n: int) -> float:
    """F1 of n-grams of lower-cased words."""
    counters = []
    for text in (output, reference):
        words = text.lower().split()
        counters.append(Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1)))
    return overlap_f1(*counters)


def rouge_l(output: str, reference: str) -> float:
    """F1 of the longest common subsequence of lower-cased words."""
    a, b = output.lower().split(), reference.lower().split()
    row = [0] * (len(b) + 1)
    for x in a:
        diagonal = 0
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], diagonal + 1 if x == y else max(row[j], row[j - 1])
    return 2 * row[-1] / (len(a) + len(b)) if row[-1] else 0.0


@METRICS.register("rouge1")
class Rouge1(MeanMetric):
    """ROUGE-1."""

    summary = "ROUGE-1: F1 of words"
    task = "summarization"
    higher_is_better = True

    def sentence_score(self, output: str, reference: str) -> float:
        return rouge_n(output, reference, 1)


@METRICS.register("rouge2")
class Rouge2(MeanMetric):
    """ROUGE-2."""

    summary = "ROUGE-2: F1 of pairs of words"
    task = "summarization"
    higher_is_better = True

    def sentence_score(self, output: str, reference: str) -> float:
        return rouge_n(output, reference, 2)


@METRICS.register("rougeL")
class RougeL(MeanMetric):
    """ROUGE-L."""

    summary = "ROUGE-L: F1 of the longest common subsequence"
    task = "summarization"
    higher_is_better = True

    def sentence_score(self, output: str, reference: str) -> float:
        return rouge_l(output, reference)
