"""Tag accuracy and entity F1, by hand."""

import pytest

from regard.evaluation.metrics import corpus_score
from regard.evaluation.metrics.tagging import entities


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O O", set()),
        ("B-PER I-PER O", {("PER", 0, 1)}),
        ("B-PER B-PER", {("PER", 0, 0), ("PER", 1, 1)}),
        ("I-PER I-LOC", {("PER", 0, 0), ("LOC", 1, 1)}),
        ("O B-LOC", {("LOC", 1, 1)}),
        ("B-LOC I-LOC I-PER", {("LOC", 0, 1), ("PER", 2, 2)}),
        ("noun verb O", {("noun", 0, 0), ("verb", 1, 1)}),
    ],
)
def test_entities_of_tags(tags: str, expected: set[tuple[str, int, int]]) -> None:
    assert entities(tags.split()) == expected


def test_a_partial_entity_is_wrong() -> None:
    outputs, references = ["B-PER O O", "B-LOC O"], ["B-PER I-PER O", "B-LOC O"]
    assert corpus_score("entity_f1", outputs, [references]).value == pytest.approx(100 * 2 * 1 / (2 + 2))
    assert corpus_score("tag_accuracy", outputs, [references]).value == pytest.approx(100 * 4 / 5)


def test_missing_and_extra_tags_are_wrong() -> None:
    assert corpus_score("tag_accuracy", ["O O O"], [["O"]]).value == pytest.approx(100 / 3)
    assert corpus_score("tag_accuracy", ["O"], [["O O O O"]]).value == pytest.approx(25)
