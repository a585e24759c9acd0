"""Metrics of forecasts: by hand, and their direction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.evaluation.metrics import METRICS
from regard.evaluation.metrics._forecast import ForecastMetric, Forecasts

NAMES = [name for name, metric in METRICS.items() if issubclass(metric, ForecastMetric)]
QUANTILES = (0.1, 0.5, 0.9)


def forecasts(outputs: object, truth: object, quantiles: tuple[float, ...] = ()) -> Forecasts:
    """One column with mean 10, scale 2 and a naive error of 0.5."""
    given = np.array(outputs, float)
    given = given[None, :, None, None] if given.ndim == 1 else given[None, :, None, :]
    one = np.ones(1)
    point = len(quantiles) // 2
    return Forecasts(given, np.array(truth, float)[None, :, None], 10 * one, 2 * one, 0.5 * one, point, quantiles)


def score(name: str, value: Forecasts) -> float:
    metric = METRICS.get(name)
    assert issubclass(metric, ForecastMetric)
    return float(metric.finish(np.nanmean(metric.value_errors(value)), value.quantiles))


def test_values_by_hand() -> None:
    given = forecasts([1.0, 2.0, 3.0], [1.0, 4.0, np.nan])
    assert score("mse", given) == pytest.approx(2.0)
    assert score("mae", given) == pytest.approx(1.0)
    assert score("mase", given) == pytest.approx(2.0)
    assert score("smape", given) == pytest.approx(200 * (0 + 4 / 32) / 2)  # 12 and 12, 14 and 18
    intervals = forecasts([[0, 1, 2], [0, 1, 2]], [1.5, 3.0], QUANTILES)
    by_hand = [(0.1 * 1.5 + 0.5 * 0.5 + 0.1 * 0.5) / 3, (0.1 * 3 + 0.5 * 2 + 0.9 * 1) / 3]
    assert score("pinball", intervals) == pytest.approx(np.mean(by_hand))
    assert score("coverage_error", intervals) == pytest.approx(30)  # half of them are in, 80 % should be


@pytest.mark.parametrize("name", [name for name in NAMES if name != "coverage_error"])
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=10), st.floats(0.1, 5), st.data())
def test_a_perfect_forecast_beats_a_corrupted_one(
    name: str, truth: list[float], change: float, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(truth) - 1))
    corrupted = [value + change * (index == at) for index, value in enumerate(truth)]
    quantiles = QUANTILES if METRICS.get(name).quantiles else ()  # type: ignore[attr-defined]
    width = max(1, len(quantiles))
    perfect, other = (
        score(name, forecasts([[value] * width for value in values], truth, quantiles)) for values in (truth, corrupted)
    )
    key = METRICS.get(name).sort_key
    assert key(perfect) > key(other)


def test_intervals_that_hold_what_they_promise_beat_others() -> None:
    truth = np.linspace(-1, 1, 101)
    key = METRICS.get("coverage_error").sort_key
    scores = [score("coverage_error", forecasts([[-w, 0, w]] * 101, truth, QUANTILES)) for w in (0.8, 0.2, 3.0)]
    assert key(scores[0]) > max(map(key, scores[1:]))
