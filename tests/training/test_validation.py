"""The comparison of validation results."""

import math

from regard.training.validation import ValidationResult


def result(value: float, loss: float, metric: str = "bleu") -> ValidationResult:
    return ValidationResult(loss, math.exp(min(loss, 50)), metric, value, [])


def test_the_loss_breaks_ties() -> None:
    assert result(0.0, 0.1).sort_key > result(0.0, 0.3).sort_key, "BLEU is 0 for all outputs of fewer than four words"
    assert result(1.0, 0.9).sort_key > result(0.0, 0.1).sort_key


def test_lower_error_rates_and_losses_are_better() -> None:
    assert result(10.0, 1.0, "wer").sort_key > result(20.0, 0.5, "wer").sort_key
    assert result(0.5, 0.5, "loss").sort_key > result(0.6, 0.6, "loss").sort_key


def test_nan_is_worse_than_any_number() -> None:
    assert result(math.nan, 1.0).sort_key < result(0.0, 9.0).sort_key
    assert result(0.0, math.nan).sort_key < result(0.0, 9.0).sort_key
