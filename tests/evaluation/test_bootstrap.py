"""Paired bootstrap: equal systems are equal, better ones are better, whichever way a measure points."""

import random

import numpy as np
import pytest

from regard.evaluation.bootstrap import _resampler, compare
from regard.evaluation.metrics import NAMES, corpus_score

WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "under", "mat", "hill", "old", "red", "and", "then"]


def damaged(sentences: list[str], share: float, seed: int) -> list[str]:
    """The sentences with some words replaced."""
    dice = random.Random(seed)
    return [" ".join(dice.choice(WORDS) if dice.random() < share else word for word in s.split()) for s in sentences]


@pytest.fixture(scope="module")
def reference() -> list[str]:
    dice = random.Random(0)
    return [" ".join(dice.choice(WORDS) for _ in range(dice.randint(4, 15))) for _ in range(60)]


@pytest.mark.parametrize("measure", NAMES)
def test_equal_systems_do_not_differ(measure: str, reference: list[str]) -> None:
    outputs = damaged(reference, 0.2, 1)
    same = compare(measure, outputs, list(outputs), [reference], draws=50)
    assert same.p == 1
    assert same.interval == (0.0, 0.0)
    assert same.first == same.second == corpus_score(measure, outputs, [reference]).value


@pytest.mark.parametrize("measure", NAMES)
def test_a_clearly_better_system_wins_from_either_side(measure: str, reference: list[str]) -> None:
    bad, good = damaged(reference, 0.6, 1), damaged(reference, 0.05, 2)
    better_second = compare(measure, bad, good, [reference], draws=100)
    better_first = compare(measure, good, bad, [reference], draws=100)
    up = corpus_score(measure, good, [reference]).higher_is_better
    assert better_second.p < 0.05
    assert better_first.p < 0.05
    for result, sign in ((better_second, 1), (better_first, -1)):
        low, high = result.interval
        assert low <= result.second - result.first <= high
        assert low <= high
        assert (low > 0) if (sign > 0) == up else (high < 0)
    assert better_second.interval == pytest.approx((-better_first.interval[1], -better_first.interval[0]))


def test_systems_that_are_equally_good_are_not_told_apart(reference: list[str]) -> None:
    for measure in ("bleu", "wer"):
        results = [
            compare(
                measure, damaged(reference, 0.3, 2 * at), damaged(reference, 0.3, 2 * at + 1), [reference], draws=100
            )
            for at in range(5)
        ]
        assert sorted(result.p for result in results)[2] > 0.05


def test_it_is_the_same_every_time(reference: list[str]) -> None:
    first, second = damaged(reference, 0.3, 1), damaged(reference, 0.25, 2)
    assert compare("chrf", first, second, [reference], draws=50) == compare(
        "chrf", first, second, [reference], draws=50
    )
    other = compare("chrf", first, second, [reference], draws=50, seed=1)
    assert other.interval != compare("chrf", first, second, [reference], draws=50).interval


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("measure", NAMES)
def test_all_sentences_drawn_once_give_the_score_of_the_corpus(measure: str, count: int, reference: list[str]) -> None:
    """Also where the second reference is now longer, now shorter, and at times the nearer one."""
    outputs, dice = damaged(reference, 0.3, 1), random.Random(3)
    other = [" ".join((s.split() + ["the"] * 3)[: dice.randint(3, 18)]) for s in damaged(outputs, 0.2, 4)]
    references = [reference, other][:count]
    score = _resampler(measure, outputs, references, None)
    order = np.random.default_rng(0).permutation(len(outputs))
    assert score(order) == pytest.approx(corpus_score(measure, outputs, references).value, rel=1e-9)


@pytest.mark.parametrize("measure", sorted({*NAMES} - {"cider"}))  # whose rarity is of the whole set
def test_a_set_is_scored_as_those_sentences_would_be(measure: str, reference: list[str]) -> None:
    outputs = damaged(reference, 0.3, 1)
    chosen = np.array([5, 5, 9, 31, 2, 40, 41, 5])
    expected = corpus_score(measure, [outputs[at] for at in chosen], [[reference[at] for at in chosen]]).value
    assert _resampler(measure, outputs, [reference], None)(chosen) == pytest.approx(expected, rel=1e-9)


def test_the_tokeniser_is_passed_on() -> None:
    first, second, reference = ["我爱北京天安门"] * 3, ["我爱上海天安门"] * 3, ["我爱北京天安门"] * 3
    result = compare("bleu", first, second, [reference], tokenize="zh", draws=10)
    assert result.first == pytest.approx(100)
    assert result.interval[1] == pytest.approx(result.second - 100)
    assert 0 < result.second < 100
