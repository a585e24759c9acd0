"""The interface of evaluators: what `regard evaluate` does for a task whose outputs are not texts or labels.

A task names one in `Task.evaluator`; "outputs" stands for `regard.evaluation.report`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from regard.errors import RegardError
from regard.evaluation.metrics import Metric
from regard.evaluation.report import Progress
from regard.inference.predictor import Predictor
from regard.registry import Registry


class EvaluatorReport(Protocol):
    """The result of an evaluation."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        ...

    def lines(self) -> list[str]:
        """Lines for people to read."""
        ...


class Evaluator(ABC):
    """One kind of evaluation."""

    @abstractmethod
    def evaluate(
        self, run: Path, predictor: Predictor, files: Sequence[Path], metrics: Sequence[str] | None, progress: Progress
    ) -> EvaluatorReport:
        """The report of a run on test files. metrics: those that were asked for. Raises RegardError."""

    def validation_score(self, metric: type[Metric], predictor: Predictor, dataset: Any) -> float:
        """A metric of a validation dataset in training, if it is neither of outputs nor of the loss."""
        raise RegardError(f"training.metric: {metric.name} cannot be computed in training; choose another one.")


EVALUATORS: Registry[type[Evaluator]] = Registry("evaluator", "regard.evaluation.evaluators", deferred=True)
