"""TER: translation edit rate, in which moving a phrase is one edit (Snover et al. 2006), by sacrebleu."""

from typing import Any

from regard.evaluation.metrics import METRICS
from regard.evaluation.metrics._sacrebleu import SacrebleuMetric


@METRICS.register("ter")
class Ter(SacrebleuMetric):
    """Edits and moves of words, over the mean length of the references."""

    summary = "translation edit rate: edits and moves of words"
    task = "translation"
    higher_is_better = False

    def build_scorer(self) -> Any:
        from sacrebleu.metrics.ter import TER

        return TER()
