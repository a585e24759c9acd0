"""Paired bootstrap: equal systems do not differ, better ones are significant, for metrics of either direction."""

import random

import pytest

from regard.evaluation.bootstrap import compare_outputs
from regard.evaluation.metrics import corpus_score, output_metrics

NAMES = [metric.name for metric in output_metrics()]
WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "under", "mat", "hill", "old", "red", "and", "then"]


def corrupted(sentences: list[str], share: float, seed: int) -> list[str]:
    """The sentences with some words replaced."""
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) if rng.random() < share else word for word in s.split()) for s in sentences]


@pytest.fixture(scope="module")
def reference() -> list[str]:
    rng = random.Random(0)
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(4, 15))) for _ in range(60)]


@pytest.mark.parametrize("metric", NAMES)
def test_equal_systems_do_not_differ(metric: str, reference: list[str]) -> None:
    outputs = corrupted(reference, 0.2, 1)
    same = compare_outputs(metric, outputs, list(outputs), [reference], resamples=50)
    assert same.p == 1
    assert same.interval == (0.0, 0.0)
    assert same.first == same.second == corpus_score(metric, outputs, [reference]).value


@pytest.mark.parametrize("metric", NAMES)
def test_a_clearly_better_system_is_significant_as_first_and_as_second(metric: str, reference: list[str]) -> None:
    bad, good = corrupted(reference, 0.6, 1), corrupted(reference, 0.05, 2)
    better_second = compare_outputs(metric, bad, good, [reference], resamples=100)
    better_first = compare_outputs(metric, good, bad, [reference], resamples=100)
    higher_is_better = corpus_score(metric, good, [reference]).higher_is_better
    assert better_second.p < 0.05
    assert better_first.p < 0.05
    for result, sign in ((better_second, 1), (better_first, -1)):
        low, high = result.interval
        assert low <= result.second - result.first <= high
        assert low <= high
        assert (low > 0) if (sign > 0) == higher_is_better else (high < 0)
    assert better_second.interval == pytest.approx((-better_first.interval[1], -better_first.interval[0]))


def test_equally_good_systems_do_not_differ_significantly(reference: list[str]) -> None:
    for metric in ("bleu", "wer"):
        results = [
            compare_outputs(
                metric,
                corrupted(reference, 0.3, 2 * at),
                corrupted(reference, 0.3, 2 * at + 1),
                [reference],
                resamples=100,
            )
            for at in range(5)
        ]
        assert sorted(result.p for result in results)[2] > 0.05


def test_the_comparison_is_deterministic_given_a_seed(reference: list[str]) -> None:
    first, second = corrupted(reference, 0.3, 1), corrupted(reference, 0.25, 2)
    assert compare_outputs("chrf", first, second, [reference], resamples=50) == compare_outputs(
        "chrf", first, second, [reference], resamples=50
    )
    other = compare_outputs("chrf", first, second, [reference], resamples=50, seed=1)
    assert other.interval != compare_outputs("chrf", first, second, [reference], resamples=50).interval


def test_the_tokenizer_is_passed_on() -> None:
    first, second, reference = ["我爱北京天安门"] * 3, ["我爱上海天安门"] * 3, ["我爱北京天安门"] * 3
    result = compare_outputs("bleu", first, second, [reference], tokenize="zh", resamples=10)
    assert result.first == pytest.approx(100)
    assert result.interval[1] == pytest.approx(result.second - 100)
    assert 0 < result.second < 100
