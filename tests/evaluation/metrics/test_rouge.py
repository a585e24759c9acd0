"""ROUGE: values by hand, and properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.evaluation.metrics import corpus_score
from regard.evaluation.metrics.rouge import rouge_l, rouge_n

sentence = st.lists(st.sampled_from(["the", "cat", "Sat", "on", "mat"]), max_size=6).map(" ".join)


def test_rouge_by_hand() -> None:
    output, reference = "The cat sat on the mat", "the cat was on a mat"
    # words: the 1 of 2, cat, on, mat in common: 4 of 6 and 6
    assert rouge_n(output, reference, 1) == pytest.approx(8 / 12)
    # pairs: "the cat" only, of 5 and 5
    assert rouge_n(output, reference, 2) == pytest.approx(2 / 10)
    # the cat on mat
    assert rouge_l(output, reference) == pytest.approx(8 / 12)
    assert rouge_l("d c b a", "a b c d") == pytest.approx(2 / 8)
    assert rouge_n("d c b a", "a b c d", 1) == 1
    assert rouge_l("a b c", "a x b y c") == pytest.approx(6 / 8)


@pytest.mark.parametrize("name", ["rouge1", "rouge2", "rougeL"])
def test_corpus_rouge_is_the_mean_over_sentences_of_the_best_reference(name: str) -> None:
    by_hand = {"rouge1": (1, 0.5), "rouge2": (1, 0), "rougeL": (1, 0.5)}[name]
    score = corpus_score(name, ["a b", "c d"], [["a b", "x y"], ["y z", "d x"]])
    assert score.value == pytest.approx(100 * sum(by_hand) / 2)
    assert score.higher_is_better


@given(sentence, sentence)
def test_rouge_is_symmetric_and_between_0_and_1(a: str, b: str) -> None:
    for function in (rouge_l, lambda o, r: rouge_n(o, r, 1), lambda o, r: rouge_n(o, r, 2)):
        assert 0 <= function(a, b) <= 1
        assert function(a, b) == pytest.approx(function(b, a))
    assert rouge_l(a, b) <= rouge_n(a, b, 1) + 1e-12
    assert rouge_l(a, a) == (1.0 if a else 0.0)
