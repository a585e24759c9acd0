"""Word and character error rates, by hand, and edit distance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.evaluation.metrics import corpus_score
from regard.evaluation.metrics.error_rate import edit_distance

short = st.text("abc", max_size=7)


@pytest.mark.parametrize(
    ("a", "b", "count"),
    [
        ("kitten", "sitting", 3),
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("flaw", "lawn", 2),
        ("intention", "execution", 5),
        ("ab", "ba", 2),
        (["a", "b c"], ["a", "b", "c"], 2),
    ],
)
def test_edit_distance_by_hand(a, b, count: int) -> None:
    assert edit_distance(a, b) == count


@given(short, short, short)
def test_edit_distance_is_a_distance(a: str, b: str, c: str) -> None:
    assert (edit_distance(a, b) == 0) == (a == b)
    assert edit_distance(a, b) == edit_distance(b, a)
    assert edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c)
    assert abs(len(a) - len(b)) <= edit_distance(a, b) <= max(len(a), len(b))


@given(a=short, at=st.integers(0, 6), letter=st.sampled_from("xyz"))
def test_one_change_is_one_edit(a: str, at: int, letter: str) -> None:
    at = min(at, len(a))
    assert edit_distance(a, a[:at] + letter + a[at:]) == 1
    if a[at:]:
        assert edit_distance(a, a[:at] + letter + a[at + 1 :]) == 1
        assert edit_distance(a, a[:at] + a[at + 1 :]) == 1


def test_error_rates_by_hand() -> None:
    outputs, references = ["abcd", "xy"], [["abc", "xyzzy"]]
    cer = corpus_score("cer", outputs, references)
    assert cer.value == pytest.approx(100 * (1 + 3) / (3 + 5))
    assert not cer.higher_is_better
    wer = corpus_score("wer", ["the cat sat", "dogs"], [["the cat sat down", "the dogs"]])
    assert wer.value == pytest.approx(100 * (1 + 1) / (4 + 2))
    assert corpus_score("wer", ["a b c d"], [["x"]]).value == 400  # insertions: more edits than words in the reference


def test_error_rates_use_the_nearest_reference_and_its_length() -> None:
    assert corpus_score("cer", ["abcd", "xx"], [["a", "x"], ["abcde", "yyyyyy"]]).value == pytest.approx(
        100 * (1 + 1) / (5 + 1)
    )


def test_error_rates_of_empty_references_are_numbers() -> None:
    assert corpus_score("wer", ["", "a"], [["", ""]]).value == 100
    assert corpus_score("cer", ["", ""], [["", ""]]).value == 0
