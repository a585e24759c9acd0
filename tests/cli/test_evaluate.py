"""regard evaluate."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard.cli import app
from regard.errors import RegardError
from regard.evaluation.metrics import output_metrics
from tests.cli.processes import run_regard


def test_the_help_of_evaluate_lists_every_metric_of_outputs() -> None:
    words = run_regard("evaluate", "--help").stdout.replace(",", " ").replace(";", " ").replace(".", " ").split()
    assert {metric.name for metric in output_metrics()} <= set(words)
    assert "{metrics}" not in words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--links", "l", "--gold", "g", "--metric", "bleu"), "--metric: this does not apply to word alignments"),
        (("--links", "l", "--gold", "g", "--beam", "3"), "--beam: this does not apply to word alignments"),
        (("--outputs", "o", "--reference", "r", "--beam", "3"), "--beam: this is for a run, and there is none"),
        (("--outputs", "o", "--reference", "r", "--precision", "int8"), "--precision: this is for a run"),
    ],
)
def test_an_option_that_would_be_ignored_is_rejected(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "lgor":
        Path(name).write_text("0-0\n")
    with pytest.raises(RegardError, match=message):
        CliRunner().invoke(app, ["evaluate", *arguments], catch_exceptions=False)
