"""Learning rate schedules."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.training.schedule import learning_rate
from regard.training.settings import TrainingSettings


def settings(schedule: str, warmup: int = 100) -> TrainingSettings:
    return TrainingSettings.parse({"schedule": schedule, "warmup_steps": warmup, "learning_rate": 2.0})


@pytest.mark.parametrize("schedule", ["inverse-sqrt", "cosine", "constant"])
def test_warmup_is_linear_up_to_the_peak(schedule: str) -> None:
    rates = [learning_rate(settings(schedule), step, 1000) for step in range(1, 101)]
    assert rates[49] == pytest.approx(1.0)
    assert rates[99] == pytest.approx(2.0)
    assert rates == sorted(rates)


def test_four_times_the_steps_halve_the_inverse_square_root_rate() -> None:
    assert learning_rate(settings("inverse-sqrt"), 400, 1000) == pytest.approx(1.0)
    assert learning_rate(settings("inverse-sqrt"), 1600, 2000) == pytest.approx(0.5)


def test_the_cosine_ends_at_zero_and_is_half_in_the_middle() -> None:
    assert learning_rate(settings("cosine"), 550, 1000) == pytest.approx(1.0)
    assert learning_rate(settings("cosine"), 1000, 1000) == pytest.approx(0.0, abs=1e-12)


@given(
    st.sampled_from(["inverse-sqrt", "cosine", "constant"]),
    st.integers(0, 500),
    st.integers(1, 2000),
    st.integers(1, 2000),
)
def test_the_rate_stays_between_zero_and_the_peak(schedule: str, warmup: int, step: int, steps: int) -> None:
    rate = learning_rate(settings(schedule, warmup), min(step, steps), steps)
    assert 0 <= rate <= 2.0
    assert math.isfinite(rate)
