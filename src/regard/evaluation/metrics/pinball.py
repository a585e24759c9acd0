"""Quantile loss (Koenker and Bassett 1978), also called pinball loss."""

import numpy as np

from regard.evaluation.metrics import METRICS
from regard.evaluation.metrics._forecast import ForecastMetric, Forecasts, Values


@METRICS.register("pinball")
class PinballLoss(ForecastMetric):
    """The mean over quantiles of max(q e, (q - 1) e), of standardized values."""

    summary = "quantile loss of standardized values, the mean over quantiles"
    task = "forecasting"
    higher_is_better = False
    quantiles = True

    @classmethod
    def value_errors(cls, forecasts: Forecasts) -> Values:
        q = np.array(forecasts.quantiles)
        errors = forecasts.truth[..., None] - forecasts.outputs
        return np.asarray(np.maximum(q * errors, (q - 1) * errors).mean(-1), np.float64)
