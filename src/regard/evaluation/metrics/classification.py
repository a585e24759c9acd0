"""Macro F1 of classes. Their accuracy is exact match."""

from collections.abc import Sequence

import numpy as np

from regard.evaluation.metrics import METRICS, OutputMetric, References, Statistics


@METRICS.register("macro_f1")
class MacroF1(OutputMetric):
    """The mean of each class's F1, over the classes that are in the references."""

    summary = "the mean of each class's F1"
    task = "classification"
    inputs = "labels"
    references = "one"
    higher_is_better = True

    def statistics(self, outputs: Sequence[str], references: References) -> Statistics:
        """(number of the output's class, number of the reference's class)"""
        numbers = {label: number for number, label in enumerate(dict.fromkeys((*references[0], *outputs)))}
        pairs = zip(outputs, references[0], strict=True)
        return np.array([(numbers[output], numbers[reference]) for output, reference in pairs], dtype=np.float64)

    def from_statistics(self, rows: Statistics) -> float:
        outputs, references = rows.T.astype(np.int64)
        classes = int(rows.max()) + 1
        predicted, actual = np.bincount(outputs, minlength=classes), np.bincount(references, minlength=classes)
        correct = np.bincount(references[outputs == references], minlength=classes)
        present = actual > 0
        return float(100 * (2 * correct[present] / (predicted + actual)[present]).mean())

    def signature(self, references: References) -> str:
        return "mean over classes"
