"""Reports: of a file of outputs, and of a run that is compared with another."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from regard.evaluation.evaluation_set import EvaluationSet
from regard.evaluation.metrics import METRICS
from regard.evaluation.report import (
    MAX_CONFUSIONS,
    Confusion,
    GeneratedOutputs,
    Generator,
    Progress,
    Systems,
    confusions,
    default_metrics,
    evaluate_systems,
)
from regard.inference.options import Options

SOURCES = [f"{'w ' * (1 + number % 12)}x" for number in range(60)]
REFERENCES = [f"the {number} cats sat on the mat" for number in range(60)]


@contextmanager
def no_progress(description: str, total: int) -> Iterator[Callable[[int], None]]:
    yield lambda count: None


class ReferenceGenerator(Generator):
    """Generates the references; the name of the run is the number of outputs that are correct."""

    def __call__(self, run: Path, sources: Sequence[Any], progress: Progress) -> GeneratedOutputs:
        correct = int(run.name)
        texts = REFERENCES[:correct] + ["wrong"] * (len(REFERENCES) - correct)
        return GeneratedOutputs(
            texts, seconds=2.0, tokens=100, split_sources=1, engine="copier", beam=self.options.beam
        )


def test_outputs_without_sources_have_scores_but_no_lengths() -> None:
    data = EvaluationSet(None, [REFERENCES], [*REFERENCES[:30], *["wrong"] * 30])
    report = evaluate_systems(
        data, ["exact", "bleu"], Systems(outputs=Path("o.txt")), ReferenceGenerator(Options()), no_progress
    )
    assert [(score.name, score.value > 0) for score in report.scores] == [("exact", True), ("bleu", True)]
    assert report.scores[0].value == 50
    record = report.as_json()
    assert set(record) == {"sentences", "rejected", "length_unit", "scores", "by_length"}
    assert record["by_length"] == {}


def test_a_run_is_compared_with_another() -> None:
    data = EvaluationSet(list(SOURCES), [REFERENCES], rejected={"empty source": 2})
    systems = Systems(run=Path("20"), compare_with=Path("50"))
    report = evaluate_systems(data, ["exact", "cer"], systems, ReferenceGenerator(Options(beam=3)), no_progress)
    assert report.texts == REFERENCES[:20] + ["wrong"] * 40
    exact, cer = report.comparisons
    assert exact.second > exact.first
    assert cer.second < cer.first
    assert exact.p < 0.01
    assert cer.p < 0.01
    record = json.loads(json.dumps(report.as_json()))
    assert set(record["by_length"]) == {"20", "50"}
    assert sum(bucket["count"] for bucket in record["by_length"]["20"]) == 60
    assert (record["run"], record["compared_with"], record["beam"], record["engine"]) == ("20", "50", 3, "copier")
    assert (record["tokens_per_second"], record["sentences_per_second"]) == (50, 30.0)
    assert [each["metric"] for each in record["comparison"]] == ["exact", "cer"]
    assert (record["split_sources"], record["unreadable"], record["rejected"]) == (1, 0, {"empty source": 2})
    assert "first_error" not in record


def test_sources_that_are_not_texts_have_no_length() -> None:
    data = EvaluationSet([Path("a.png")] * 60, [REFERENCES])
    report = evaluate_systems(data, ["exact"], Systems(run=Path("20")), ReferenceGenerator(Options()), no_progress)
    assert (report.length_unit, report.by_length) == ("nothing", {})


def test_metrics_of_labels_come_with_the_most_frequent_confusions() -> None:
    outputs, references = ["a", "a", "b", "c", "a", "d"], ["a", "b", "b", "b", "b", "c"]
    assert confusions(outputs, references) == [Confusion("b", "a", 2), Confusion("b", "c", 1), Confusion("c", "d", 1)]
    data = EvaluationSet(None, [[f"class {at}" for at in range(20)]], [f"class {at + 1}" for at in range(20)])
    systems = Systems(outputs=Path("o.txt"))
    report = evaluate_systems(data, ["macro_f1"], systems, ReferenceGenerator(Options()), no_progress)
    assert len(report.confusions or ()) == MAX_CONFUSIONS
    assert report.as_json()["confusions"][0] == ["class 0", "class 1", 1]
    assert evaluate_systems(data, ["exact"], systems, ReferenceGenerator(Options()), no_progress).confusions is None


def test_default_metrics_are_registered() -> None:
    assert all(name in METRICS for name in default_metrics(None))


@pytest.mark.parametrize("preset", ["classifier", "span-qa", "tagger", "show-attend-tell", "listen-attend-spell"])
def test_default_metrics_of_a_run_include_what_selects_its_checkpoints(preset: str) -> None:
    from regard.runs.folder import RunDescription
    from regard.training.settings import run_settings

    settings = run_settings(preset, {}, [], {})
    names = default_metrics(RunDescription(model=settings.model, truncate=settings.data.truncate))
    assert settings.training.metric in names
    assert all(METRICS.canonical(name) == name for name in names)
