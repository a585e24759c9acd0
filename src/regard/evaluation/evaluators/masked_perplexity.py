"""The perplexity of masked language models on plain text."""

from collections.abc import Sequence
from pathlib import Path

from regard.evaluation.evaluators.base import EVALUATORS, Evaluator, EvaluatorReport
from regard.evaluation.perplexity import check_no_metrics, compute_masked_perplexity, read_test_documents
from regard.evaluation.report import Progress
from regard.inference.predictor import Predictor


@EVALUATORS.register("masked-perplexity")
class MaskedPerplexityEvaluator(Evaluator):
    """Of all documents of the files together."""

    def evaluate(
        self, run: Path, predictor: Predictor, files: Sequence[Path], metrics: Sequence[str] | None, progress: Progress
    ) -> EvaluatorReport:
        check_no_metrics(run, metrics)
        documents = read_test_documents(files)
        with progress(f"reading with {run}", len(documents)) as advance:
            return compute_masked_perplexity(predictor, documents, advance)
