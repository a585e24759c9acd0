"""Forecasts of test series, at every step, beside naive, seasonal naive and ridge regression forecasts."""

from collections.abc import Sequence
from pathlib import Path

from regard.data.dataset_kinds.series_windows import SeriesDataset
from regard.errors import RegardError
from regard.evaluation.evaluators.base import EVALUATORS, Evaluator, EvaluatorReport
from regard.evaluation.forecasts import backtest, forecast_metric, validation_score
from regard.evaluation.metrics import Metric
from regard.evaluation.report import Progress
from regard.inference.pipelines.forecast import ForecastPipeline
from regard.inference.predictor import Predictor


@EVALUATORS.register("forecast")
class ForecastEvaluator(Evaluator):
    """A rolling backtest: a forecast from every row of the files that has a history before it."""

    def evaluate(
        self, run: Path, predictor: Predictor, files: Sequence[Path], metrics: Sequence[str] | None, progress: Progress
    ) -> EvaluatorReport:
        if not files:
            raise RegardError("name a test set: a table of series, as in: regard evaluate run test.csv")
        assert isinstance(predictor.pipeline, ForecastPipeline)
        return backtest(run, predictor.pipeline, files, metrics or predictor.task_metrics, progress)

    def validation_score(self, metric: type[Metric], predictor: Predictor, dataset: SeriesDataset) -> float:
        """Of at most 1,000 windows spread over the dataset."""
        assert isinstance(predictor.pipeline, ForecastPipeline)
        return validation_score(forecast_metric(metric.name, predictor.pipeline.quantiles), predictor.pipeline, dataset)
