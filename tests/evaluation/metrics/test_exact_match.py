"""Exact match, by hand."""

from regard.evaluation.metrics import corpus_score
from regard.evaluation.metrics.exact_match import is_exact_match


def test_exact_match_by_hand() -> None:
    assert is_exact_match(" 2022-03-03\n", "2022-03-03")
    assert not is_exact_match("2022-03-04", "2022-03-03")
    assert not is_exact_match("Word", "word")
    score = corpus_score("exact", ["a", "b", "c", "d"], [["a", "x", "c", "y"]])
    assert score.value == 50
    assert score.higher_is_better
