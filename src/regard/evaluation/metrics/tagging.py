"""Metrics of tagging: accuracy of tags, and F1 of whole entities."""

from collections.abc import Sequence

import numpy as np

from regard.evaluation.metrics import METRICS, OutputMetric, References, Statistics

Entity = tuple[str, int, int]  # its type, and its first and last word


def entities(tags: Sequence[str]) -> set[Entity]:
    """The entities of a sentence: B- begins one, I- of the same type continues it, O is outside; a tag without a prefix
    is an entity of one word (Tjong Kim Sang and De Meulder 2003)."""
    found: set[Entity] = set()
    first, current = 0, ""
    for at, tag in enumerate([*tags, "O"]):
        prefix, _, entity_type = tag.partition("-") if tag[:2] in ("B-", "I-") else ("", "", tag)
        if current and not (prefix == "I" and entity_type == current):
            found.add((current, first, at - 1))
            current = ""
        if prefix and not current:
            first, current = at, entity_type
        elif not prefix and tag != "O":
            found.add((tag, at, at))
    return found


@METRICS.register("tag_accuracy")
class TagAccuracy(OutputMetric):
    """The share of the references' tags that the outputs have in the same positions."""

    summary = "tags that are right"
    task = "tagging"
    inputs = "tags"
    references = "one"
    higher_is_better = True

    def statistics(self, outputs: Sequence[str], references: References) -> Statistics:
        """(correct tags, all tags)"""
        rows = []
        for output, reference in zip(outputs, references[0], strict=True):
            tags, expected = output.split(), reference.split()
            rows.append((sum(a == b for a, b in zip(tags, expected, strict=False)), max(len(tags), len(expected))))
        return np.array(rows, dtype=np.float64)

    def from_statistics(self, rows: Statistics) -> float:
        correct, total = rows.sum(0)
        return float(100 * (correct / max(1, total)))

    def signature(self, references: References) -> str:
        return "percent of all tags"


@METRICS.register("entity_f1")
class EntityF1(OutputMetric):
    """F1 over all entities; an entity is correct if its type and both its boundaries are."""

    summary = "F1 of whole entities, such as names"
    task = "tagging"
    inputs = "tags"
    references = "one"
    higher_is_better = True

    def statistics(self, outputs: Sequence[str], references: References) -> Statistics:
        """(correct entities, entities of the output, entities of the reference)"""
        rows = []
        for output, reference in zip(outputs, references[0], strict=True):
            predicted, actual = entities(output.split()), entities(reference.split())
            rows.append((len(predicted & actual), len(predicted), len(actual)))
        return np.array(rows, dtype=np.float64)

    def from_statistics(self, rows: Statistics) -> float:
        correct, predicted, actual = rows.sum(0)
        return float(100 * (2 * correct / max(1, predicted + actual)))

    def signature(self, references: References) -> str:
        return "F1 of whole entities"
