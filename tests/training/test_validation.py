"""What is compared between validations."""

import math

from regard.training.validation import ValidationResult


def result(value: float, loss: float, metric: str = "bleu") -> ValidationResult:
    return ValidationResult(loss, math.exp(min(loss, 50)), metric, value, [])


def test_equal_scores_are_told_apart_by_their_loss() -> None:
    assert result(0.0, 0.1).sort_key > result(0.0, 0.3).sort_key, "BLEU is 0 for all outputs of fewer than four words"
    assert result(1.0, 0.9).sort_key > result(0.0, 0.1).sort_key


def test_fewer_errors_are_better() -> None:
    assert result(10.0, 1.0, "wer").sort_key > result(20.0, 0.5, "wer").sort_key
    assert result(0.5, 0.5, "loss").sort_key > result(0.6, 0.6, "loss").sort_key


def test_what_is_not_a_number_is_worse_than_any() -> None:
    assert result(math.nan, 1.0).sort_key < result(0.0, 9.0).sort_key
    assert result(0.0, math.nan).sort_key < result(0.0, 9.0).sort_key
