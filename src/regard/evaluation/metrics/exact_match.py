"""Exact match: the share of outputs that equal a reference; the accuracy of a classifier."""

from regard.evaluation.metrics import METRICS, MeanMetric


def is_exact_match(output: str, reference: str) -> bool:
    """Whether they are equal, except for white space at the ends."""
    return output.strip() == reference.strip()


@METRICS.register("exact", aliases=("exact_match", "accuracy"))
class ExactMatch(MeanMetric):
    """The share of outputs that equal a reference."""

    summary = "outputs that equal a reference; accuracy, for classes"
    task = "classification"
    higher_is_better = True

    def sentence_score(self, output: str, reference: str) -> float:
        return float(is_exact_match(output, reference))
