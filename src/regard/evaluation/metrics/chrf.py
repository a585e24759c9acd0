"""chrF: F-score of character n-grams (Popović 2015), by sacrebleu."""

from typing import Any

from regard.evaluation.metrics import METRICS
from regard.evaluation.metrics._sacrebleu import SacrebleuMetric


@METRICS.register("chrf")
class Chrf(SacrebleuMetric):
    """chrF2 of up to six characters."""

    summary = "chrF: n-grams of characters"
    task = "translation"
    higher_is_better = True

    def build_scorer(self) -> Any:
        from sacrebleu.metrics.chrf import CHRF

        return CHRF()
