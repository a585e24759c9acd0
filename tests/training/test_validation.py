"""What is compared between validations."""

import math

from regard.training.validation import Judgement


def judged(value: float, loss: float, measure: str = "bleu") -> Judgement:
    return Judgement(loss, math.exp(min(loss, 50)), measure, value, [])


def test_equal_scores_are_told_apart_by_their_loss() -> None:
    assert judged(0.0, 0.1).merit > judged(0.0, 0.3).merit, "BLEU is 0 for all outputs of fewer than four words"
    assert judged(1.0, 0.9).merit > judged(0.0, 0.1).merit


def test_fewer_errors_are_better() -> None:
    assert judged(10.0, 1.0, "wer").merit > judged(20.0, 0.5, "wer").merit
    assert judged(0.5, 0.5, "loss").merit > judged(0.6, 0.6, "loss").merit


def test_what_is_not_a_number_is_worse_than_any() -> None:
    assert judged(math.nan, 1.0).merit < judged(0.0, 9.0).merit
    assert judged(0.0, math.nan).merit < judged(0.0, 9.0).merit
