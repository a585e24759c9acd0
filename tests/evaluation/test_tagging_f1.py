"""Tags and names, by hand."""

import pytest

from regard.evaluation.metrics import corpus_score
from regard.evaluation.tagging_f1 import name_f1, names, right_tags


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
def test_names_are_found(tags: str, expected: set[tuple[str, int, int]]) -> None:
    assert names(tags.split()) == expected


def test_a_name_is_right_as_a_whole_or_not_at_all() -> None:
    outputs, references = ["B-PER O O", "B-LOC O"], ["B-PER I-PER O", "B-LOC O"]
    assert name_f1(outputs, references) == pytest.approx(2 * 1 / (2 + 2))
    assert right_tags(outputs, references) == pytest.approx(4 / 5)
    assert corpus_score("names", outputs, [references]).value == pytest.approx(50)
    assert corpus_score("tags", outputs, [references]).value == pytest.approx(80)
