"""Coverage of forecast intervals."""

from typing import Any

import numpy as np

from regard.evaluation.metrics import METRICS
from regard.evaluation.metrics._forecast import ForecastMetric, Forecasts, Values


@METRICS.register("coverage_error")
class CoverageError(ForecastMetric):
    """How far the share of values between the outermost quantiles is from what it should be, in percent."""

    summary = "difference between the share of values within the outermost quantiles and the nominal one, in percent"
    task = "forecasting"
    higher_is_better = False
    quantiles = True

    @classmethod
    def finish(cls, mean: Any, quantiles: tuple[float, ...]) -> Any:
        return np.abs(mean - 100 * (quantiles[-1] - quantiles[0]))

    @classmethod
    def value_errors(cls, forecasts: Forecasts) -> Values:
        inside = (forecasts.truth >= forecasts.outputs[..., 0]) & (forecasts.truth <= forecasts.outputs[..., -1])
        return np.where(np.isfinite(forecasts.truth), 100.0 * inside, np.nan)
