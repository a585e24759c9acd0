"""CIDEr-D: values by hand, and properties."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.evaluation.bootstrap import compare_outputs
from regard.evaluation.metrics import corpus_score
from regard.evaluation.metrics.cider import SIGMA, cider

words = st.lists(st.sampled_from("abcde"), min_size=1, max_size=8).map(" ".join)


def test_cider_by_hand() -> None:
    """Of two sentences: "the" is in both, so it has no weight; "cat" and "dog" have the IDF log 2."""
    references = [["the cat", "the dog"]]
    # Of one word: (0, log 2) against itself: 1. Of two: the one pair, 1. Of three and four: none.
    assert cider(["the cat", "the dog"], references) == pytest.approx([5, 5])
    # "cat" alone: of one word 1, of two nothing; one word too short.
    assert cider(["cat", "x"], references)[0] == pytest.approx(10 / 4 * math.exp(-1 / (2 * SIGMA**2)))
    # "cat cat": of one word, twice log 2 counts once: 1 x 1 / (2 x 1); of two, a pair that is not there.
    assert cider(["cat cat", "x"], references)[0] == pytest.approx(10 / 4 / 2)
    # Two references: the mean of what each gives; now "cat" is in both sentences' references, "a" in one's.
    assert cider(["a cat", "x"], [["a cat", "the dog"], ["the cat", "a cat"]])[0] == pytest.approx(0)
    assert cider(["the cat", "x"], [["the cat", "the dog"], ["blue bird", "red bird"]])[0] == pytest.approx(5 / 2)


def test_one_sentence_alone_cannot_be_scored() -> None:
    assert cider(["a cat"], [["a cat"]]) == [0]
    assert cider([], [[]]) == []


@given(st.lists(words, min_size=2, max_size=6), st.data())
def test_no_output_scores_higher_than_its_reference(sentences: list[str], data: st.DataObject) -> None:
    outputs = [data.draw(words) for _ in sentences]
    for own, other in zip(cider(sentences, [sentences]), cider(outputs, [sentences]), strict=True):
        assert -1e-9 <= other <= 10 + 1e-9
        assert other <= own + 1e-9


def test_the_corpus_score_is_the_mean_times_100_and_can_be_compared() -> None:
    references = [["the cat sat here", "a dog ran off", "two birds sang low"]]
    good, bad = references[0], ["the cat sat", "x y z", "two birds"]
    assert corpus_score("cider", good, references).value == pytest.approx(1000)
    comparison = compare_outputs("cider", bad, good, references)
    assert comparison.second == pytest.approx(1000)
    assert comparison.second > comparison.first
    assert comparison.p < 0.2
