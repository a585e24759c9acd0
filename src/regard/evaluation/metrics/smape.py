"""Symmetric mean absolute percentage error (Makridakis 1993)."""

import numpy as np

from regard.evaluation.metrics import METRICS
from regard.evaluation.metrics._forecast import ForecastMetric, Forecasts, Values


@METRICS.register("smape")
class SymmetricPercentageError(ForecastMetric):
    """200 |y - f| / (|y| + |f|), of values in their own units; 0 where both are 0."""

    summary = "symmetric mean absolute percentage error, from 0 to 200"
    task = "forecasting"
    higher_is_better = False

    @classmethod
    def value_errors(cls, forecasts: Forecasts) -> Values:
        truth = forecasts.truth * forecasts.scale + forecasts.mean
        point = forecasts.outputs[..., forecasts.point] * forecasts.scale + forecasts.mean
        total = np.abs(truth) + np.abs(point)
        error: Values = 200 * np.abs(truth - point) / np.where(total == 0, 1, total)
        return error
