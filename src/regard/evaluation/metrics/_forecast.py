"""What metrics of forecasts have in common: an error for each value, averaged over windows, columns or steps ahead."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regard.evaluation.metrics import Inputs, Metric

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Forecasts:
    """Forecasts of windows, and what came.

    outputs: [N, H, C, Q], standardized by the training data. truth: [N, H, C], NaN where it is unknown. mean, scale: of
    each column, which give values their own units. naive_error: of each column, the mean error of repeating the last
    season in the training data, standardized. point: the output that is the point forecast. quantiles: of the outputs.
    """

    outputs: Values
    truth: Values
    mean: Values
    scale: Values
    naive_error: Values
    point: int = 0
    quantiles: tuple[float, ...] = ()

    @property
    def errors(self) -> Values:
        """[N, H, C]: truth minus the point forecast."""
        return self.truth - self.outputs[..., self.point]


class ForecastMetric(Metric):
    """The mean of an error of every value. quantiles: whether it needs forecasts of quantiles."""

    inputs: ClassVar[Inputs] = "forecasts"
    quantiles: ClassVar[bool] = False

    @classmethod
    def finish(cls, mean: Any, quantiles: tuple[float, ...]) -> Any:
        """The metric's value, from the mean of errors: a number, or one for each step ahead."""
        return mean

    @classmethod
    @abstractmethod
    def value_errors(cls, forecasts: Forecasts) -> Values:
        """[N, H, C], NaN where the truth is unknown."""
