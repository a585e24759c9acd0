"""Mean absolute error of forecasts."""

import numpy as np

from regard.evaluation.metrics import METRICS
from regard.evaluation.metrics._forecast import ForecastMetric, Forecasts, Values


@METRICS.register("mae")
class MeanAbsoluteError(ForecastMetric):
    """Of values standardized by the training data, as papers report it."""

    summary = "mean absolute error of standardized values"
    task = "forecasting"
    higher_is_better = False

    @classmethod
    def value_errors(cls, forecasts: Forecasts) -> Values:
        return np.abs(forecasts.errors)
