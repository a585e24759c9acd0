"""A metric: how often the first word is right."""

from regard.evaluation.metrics import METRICS, MeanMetric


@METRICS.register("first_word")
class FirstWord(MeanMetric):
    """Outputs whose first word is that of a reference, in percent."""

    summary = "outputs whose first word is that of a reference"
    task = "translation"
    higher_is_better = True

    def sentence_score(self, output: str, reference: str) -> float:
        return float(output.split()[:1] == reference.split()[:1])
