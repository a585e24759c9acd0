"""Mean absolute scaled error (Hyndman and Koehler 2006)."""

import numpy as np

from regard.evaluation.metrics import METRICS
from regard.evaluation.metrics._forecast import ForecastMetric, Forecasts, Values


@METRICS.register("mase")
class MeanAbsoluteScaledError(ForecastMetric):
    """Absolute error, divided by that of repeating the last season in the training data."""

    summary = "mean absolute error, in multiples of the seasonal naive error in training"
    task = "forecasting"
    higher_is_better = False

    @classmethod
    def value_errors(cls, forecasts: Forecasts) -> Values:
        return np.abs(forecasts.errors) / forecasts.naive_error
