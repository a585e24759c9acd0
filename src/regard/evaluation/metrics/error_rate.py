"""Word and character error rate: edits to the nearest reference, over its length (Levenshtein 1966)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.evaluation.metrics import METRICS, OutputMetric, References, Statistics


def edit_distance(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Insertions, deletions and substitutions that turn one into the other (Levenshtein 1966)."""
    if len(a) < len(b):
        a, b = b, a
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


@METRICS.register("wer")
class WordErrorRate(OutputMetric):
    """Edits of all sentences over the length of all references: it can pass 100."""

    summary = "word error rate"
    task = "speech"
    higher_is_better = False

    def units(self, text: str) -> Sequence[str]:
        """The units that edits are counted in."""
        return text.split()

    def statistics(self, outputs: Sequence[str], references: References) -> Statistics:
        """(edits to the nearest reference, length of that reference)"""
        rows = []
        for output, own_references in zip(outputs, zip(*references, strict=True), strict=True):
            units = [self.units(reference) for reference in own_references]
            counts = [(edit_distance(self.units(output), each), len(each)) for each in units]
            rows.append(min(counts, key=lambda pair: pair[0]))
        return np.array(rows, dtype=np.float64)

    def from_statistics(self, rows: Statistics) -> float:
        edits, length = rows.sum(0)
        return float(100 * edits / max(1, length))

    def signature(self, references: References) -> str:
        return "edits / reference length"


@METRICS.register("cer")
class CharacterErrorRate(WordErrorRate):
    """Edits of characters instead of words."""

    summary = "character error rate"
    higher_is_better = False

    def units(self, text: str) -> Sequence[str]:
        return text
