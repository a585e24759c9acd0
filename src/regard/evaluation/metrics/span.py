"""Answers that are spans of a passage, compared as SQuAD does (Rajpurkar et al. 2016, arXiv:1606.05250)."""

import unicodedata
from collections import Counter

from regard.evaluation.metrics import METRICS, MeanMetric
from regard.evaluation.metrics._overlap import overlap_f1


def normalized_answer(text: str) -> list[str]:
    """The words of an answer without case, punctuation and articles."""
    cleaned = "".join(letter for letter in text.lower() if unicodedata.category(letter)[0] not in "PS")
    return [word for word in cleaned.split() if word not in ("a", "an", "the")]


def span_f1(output: str, reference: str) -> float:
    """F1 of an answer's words; if one has none, whether both have none."""
    predicted, actual = normalized_answer(output), normalized_answer(reference)
    return overlap_f1(Counter(predicted), Counter(actual)) if predicted and actual else float(predicted == actual)


@METRICS.register("span_exact")
class SpanExactMatch(MeanMetric):
    """The share of answers that equal a reference after normalization."""

    summary = "SQuAD's exact match"
    task = "span_qa"
    higher_is_better = True

    def sentence_score(self, output: str, reference: str) -> float:
        return float(normalized_answer(output) == normalized_answer(reference))


@METRICS.register("span_f1")
class SpanF1(MeanMetric):
    """F1 of the words of answers."""

    summary = "SQuAD's F1 of words"
    task = "span_qa"
    higher_is_better = True

    def sentence_score(self, output: str, reference: str) -> float:
        return span_f1(output, reference)
