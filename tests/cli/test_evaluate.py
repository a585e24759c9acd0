"""regard evaluate."""

from regard.evaluation.metrics import output_metrics
from tests.cli.processes import run_regard


def test_the_help_of_evaluate_lists_every_metric_of_outputs() -> None:
    words = run_regard("evaluate", "--help").stdout.replace(",", " ").replace(";", " ").replace(".", " ").split()
    assert {metric.name for metric in output_metrics()} <= set(words)
    assert "{metrics}" not in words
