"""Mean squared error of forecasts."""

from regard.evaluation.metrics import METRICS
from regard.evaluation.metrics._forecast import ForecastMetric, Forecasts, Values


@METRICS.register("mse")
class MeanSquaredError(ForecastMetric):
    """Of values standardized by the training data, as papers report it."""

    summary = "mean squared error of standardized values"
    task = "forecasting"
    higher_is_better = False

    @classmethod
    def value_errors(cls, forecasts: Forecasts) -> Values:
        return forecasts.errors**2
