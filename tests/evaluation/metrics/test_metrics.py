"""All registered metrics: direction, statistics, values, names, registration."""

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard import plugins
from regard.errors import RegardError
from regard.evaluation.metrics import (
    METRICS,
    LossMetric,
    MeanMetric,
    Metric,
    OutputMetric,
    corpus_score,
    output_metric,
    output_metrics,
    parse_metric_names,
)
from regard.training.settings import RunSettings, TrainingSettings

ROOT = Path(__file__).parents[3]
OUTPUT_METRICS = [metric.name for metric in output_metrics()]
LOSS_METRICS = [name for name, metric in METRICS.items() if issubclass(metric, LossMetric)]
MANY_REFERENCES = [metric.name for metric in output_metrics() if metric.references == "many"]

words = st.sampled_from(["the", "cat", "sat", "on", "mat", "B-PER", "I-PER", "O"])
# BLEU is defined from four words on.
sentences = st.lists(words, min_size=4, max_size=9).map(" ".join)


@st.composite
def corpora(draw: st.DrawFn) -> list[str]:
    """References: several sentences, each with a word that no other has (CIDEr weighs words by how rare they are)."""
    return [f"{text} word{number}" for number, text in enumerate(draw(st.lists(sentences, min_size=2, max_size=5)))]


# Direction


@pytest.mark.parametrize("name", OUTPUT_METRICS)
@settings(max_examples=25, deadline=None)
@given(references=corpora(), data=st.data())
def test_no_output_beats_a_perfect_one(name: str, references: list[str], data: st.DataObject) -> None:
    metric = output_metric(name)
    outputs = [data.draw(st.just(reference) | sentences) for reference in references]
    perfect, other = (metric.score(each, [references]).value for each in (references, outputs))
    assert metric.sort_key(perfect) >= metric.sort_key(other) - 1e-9


@pytest.mark.parametrize("name", OUTPUT_METRICS)
@settings(max_examples=25, deadline=None)
@given(references=corpora(), data=st.data())
def test_a_perfect_output_beats_a_corrupted_one(name: str, references: list[str], data: st.DataObject) -> None:
    metric = output_metric(name)
    corrupted = list(references)
    chosen = data.draw(st.sets(st.integers(0, len(references) - 1), min_size=1))
    for number in chosen:  # words that are in no reference
        corrupted[number] = " ".join(f"xyzzy{at}" for at, _ in enumerate(references[number].split()))
    perfect, other = (metric.score(each, [references]).value for each in (references, corrupted))
    assert metric.sort_key(perfect) > metric.sort_key(other)


@pytest.mark.parametrize("name", LOSS_METRICS)
@given(low=st.floats(0, 600), increase=st.floats(1e-3, 50))
def test_a_lower_loss_is_better(name: str, low: float, increase: float) -> None:
    metric = METRICS.get(name)
    assert issubclass(metric, LossMetric)
    assert metric.sort_key(metric.from_loss(low)) > metric.sort_key(metric.from_loss(low + increase))


def test_the_numbers_of_loss_metrics_and_output_metrics() -> None:
    assert LOSS_METRICS == ["loss", "perplexity"]
    assert len(OUTPUT_METRICS) == 18


# Statistics


@pytest.mark.parametrize("name", OUTPUT_METRICS)
@settings(max_examples=15, deadline=None)
@given(references=corpora(), data=st.data())
def test_the_score_equals_that_of_all_statistics_in_any_order(
    name: str, references: list[str], data: st.DataObject
) -> None:
    """In any order; also with two references, of which the second is the nearer one at times."""
    metric = output_metric(name)
    outputs = [data.draw(st.just(reference) | sentences) for reference in references]
    sets = [references, [data.draw(st.just(output) | sentences) for output in outputs]]
    score = metric.score(outputs, sets).value
    rows = metric.statistics(outputs, sets)
    assert rows.shape[0] == len(outputs)
    assert metric.from_statistics(rows) == score
    order = np.random.default_rng(0).permutation(len(outputs))
    assert metric.from_statistics(rows[order]) == pytest.approx(score, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in OUTPUT_METRICS if name != "cider"])  # it weighs by the whole set
@settings(max_examples=15, deadline=None)
@given(references=corpora(), data=st.data())
def test_the_score_of_a_sample_equals_that_of_its_statistics(
    name: str, references: list[str], data: st.DataObject
) -> None:
    metric = output_metric(name)
    outputs = [data.draw(st.just(reference) | sentences) for reference in references]
    sample = data.draw(st.lists(st.integers(0, len(outputs) - 1), min_size=1, max_size=8))
    expected = metric.score([outputs[at] for at in sample], [[references[at] for at in sample]]).value
    assert metric.from_statistics(metric.statistics(outputs, [references])[sample]) == pytest.approx(expected, rel=1e-9)


# Values

WORDS = [
    *("the", "a", "cat", "dog", "sat", "ran", "on", "under", "mat", "hill", "old", "red", "and", "then"),
    *("B-PER", "I-PER", "O", "B-LOC"),
]
# With one reference; with two; of another system, with two; of three sentences with BLEU's effective order.
# What version 0.1 computed.
VALUES: dict[str, tuple[float, float, float, float]] = {
    "bleu": (64.94923407972686, 65.85212406392344, 54.38326096573965, 56.447364478953695),
    "bleu1": (84.1059602649007, 86.0927152317881, 80.79470198675494, 82.60869565217394),
    "bleu2": (76.75042260273362, 77.86292996475615, 70.35230229709323, 73.27731720929266),
    "bleu3": (70.44012200437723, 71.38455307977989, 61.6464264340302, 65.7522930759582),
    "chrf": (75.1280505603807, 75.24255191060227, 68.90178230985235, 79.34602260113274),
    "ter": (17.218543046357617, 17.218543046357617, 22.8476821192053, 21.73913043478261),
    "exact": (22.5, 22.5, 25.0, 0.0),
    "cer": (15.351393796623478, 15.257569799449469, 19.324430479183032, 12.631578947368421),
    "wer": (17.218543046357617, 17.218543046357617, 22.8476821192053, 21.73913043478261),
    "rouge1": (82.25817585192581, 82.43674728049726, 77.58033979908978, 82.5),
    "rouge2": (61.11216561216562, 61.11216561216562, 58.03052503052503, 66.26984126984128),
    "rougeL": (81.7343663281163, 81.91293775668773, 76.81263528138525, 82.5),
    "span_exact": (22.5, 22.5, 25.0, 0.0),
    "span_f1": (81.49602044841978, 81.75337338959625, 77.6891270508026, 84.40476190476191),
    "cider": (545.3211576121233, 415.99623521089944, 387.2784475279765, 606.6524432411477),
    "macro_f1": (21.518987341772153, 21.518987341772153, 24.472573839662452, 0.0),
    "tag_accuracy": (82.78145695364239, 82.78145695364239, 77.15231788079471, 78.26086956521739),
    "entity_f1": (82.78260869565217, 82.78260869565217, 76.92307692307693, 77.27272727272727),
}


def corrupted(texts: list[str], share: float, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) if rng.random() < share else word for word in text.split()) for text in texts]


@pytest.mark.parametrize("name", VALUES)
def test_values_do_not_change(name: str) -> None:
    rng = random.Random(5)
    reference = [" ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 15))) for _ in range(80)]
    first, second, other = corrupted(reference, 0.2, 1), corrupted(reference, 0.25, 2), corrupted(reference, 0.3, 3)
    values = (
        corpus_score(name, first, [reference]).value,
        corpus_score(name, first, [reference, other]).value,
        corpus_score(name, second, [reference, other]).value,
        corpus_score(name, first[:3], [reference[:3]], "none", effective_order=True).value,
    )
    assert values == pytest.approx(VALUES[name], rel=1e-12)


@pytest.mark.parametrize("name", [name for name in MANY_REFERENCES if name != "cider"])  # a mean over references
def test_an_output_that_equals_one_of_several_references_is_perfect(name: str) -> None:
    output, reference = ["the cat sat on the mat"], ["the cat is on the mat"]
    one, two = corpus_score(name, output, [reference]), corpus_score(name, output, [reference, output])
    assert two.value == pytest.approx(100 if two.higher_is_better else 0)
    assert one.value != two.value


@pytest.mark.parametrize("name", [name for name in OUTPUT_METRICS if name not in MANY_REFERENCES])
def test_metrics_of_one_reference_use_the_first(name: str) -> None:
    outputs, good, bad = ["O B-PER", "O"], ["O B-PER", "O"], ["B-LOC O", "B-LOC"]
    assert corpus_score(name, outputs, [good, bad]).value == 100
    assert corpus_score(name, outputs, [bad, good]).value < 100


def test_invalid_outputs_and_references_are_refused() -> None:
    with pytest.raises(RegardError, match=r"^there is nothing to score\.$"):
        corpus_score("bleu", [], [[]])
    with pytest.raises(RegardError, match=r"^reference 2 has 1 sentences and the output 2\.$"):
        corpus_score("exact", ["a", "b"], [["a", "b"], ["a"]])
    with pytest.raises(RegardError, match=r"^perplexity is a metric of loss, which outputs "):
        corpus_score("perplexity", ["a"], [["a"]])


# Names


def test_names_are_parsed_in_any_case_by_alias_and_without_duplicates() -> None:
    assert parse_metric_names("CER, rougel,accuracy,cer,EXACT_match,exact") == ["cer", "rougeL", "exact"]
    assert parse_metric_names("macro_F1,bleu,") == ["macro_f1", "bleu"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("blue", "--metric: there is no metric 'blue'; did you mean 'bleu'?"),
        (",", "--metric: there is no metric ''; there are "),
        ("loss", "loss is a metric of loss"),
    ],
)
def test_unknown_names_and_loss_metrics_are_refused(names: str, message: str) -> None:
    with pytest.raises(RegardError, match=re.escape(message)):
        parse_metric_names(names)


@pytest.mark.parametrize("name", METRICS.names())
def test_every_metric_can_select_checkpoints(name: str) -> None:
    assert TrainingSettings.parse({"metric": name}).metric == name


def test_an_alias_in_the_settings_becomes_the_registered_name() -> None:
    assert TrainingSettings.parse({"metric": "exact_match"}).metric == "exact"


@pytest.mark.parametrize(("old", "new"), [("names", "entity_f1"), ("tags", "tag_accuracy"), ("f1", "macro_f1")])
def test_an_old_name_is_refused_with_the_new_one(old: str, new: str) -> None:
    with pytest.raises(RegardError, match=f"{old} is now called {new}"):
        parse_metric_names(old)
    with pytest.raises(RegardError, match=f"training.metric: {old} is now called {new}"):
        RunSettings.parse({"training": {"metric": old}})


# Registration


@pytest.mark.parametrize("name", METRICS.builtin_names())
def test_every_metric_is_documented(name: str) -> None:
    """In the table of docs/training.md, with its summary and direction."""
    metric = METRICS.get(name)
    better = "higher" if metric.higher_is_better else "lower"
    row = f"| `{name}` | {metric.summary} | {metric.task.replace('_', ' ')} | {better} |"
    assert row in (ROOT / "docs" / "training.md").read_text()


@pytest.mark.parametrize("missing", ["higher_is_better", "summary", "task"])
def test_a_metric_without_a_required_attribute_is_refused(missing: str) -> None:
    declared = {"higher_is_better": True, "summary": "nothing", "task": "translation"}
    del declared[missing]
    incomplete: type[Metric] = type("Incomplete", (MeanMetric,), declared)
    with pytest.raises(RegardError, match=f"metric 'incomplete' must declare {missing}"):
        METRICS.add("incomplete", incomplete)
    assert "incomplete" not in METRICS


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "length_error.py"
    path.write_text(
        dedent(
            """
            from regard.evaluation.metrics import METRICS, MeanMetric


            @METRICS.register("length_error")
            class LengthError(MeanMetric):
                summary = "difference of lengths"
                task = "translation"
                higher_is_better = False

                def sentence_score(self, output: str, reference: str) -> float:
                    return abs(len(output) - len(reference)) / max(len(output), len(reference), 1)
            """
        )
    )
    yield path
    METRICS._entries.pop("length_error", None)


def test_a_metric_of_a_plugin_file_works_like_a_built_in_one(plugin: Path) -> None:
    plugins.load_file(plugin)
    assert parse_metric_names("length_error") == ["length_error"]
    assert corpus_score("length_error", ["abc", "ab"], [["abc", "abcd"]]).value == pytest.approx(25)
    assert TrainingSettings.parse({"metric": "length_error"}).metric == "length_error"
    metric = METRICS.get("length_error")
    assert issubclass(metric, OutputMetric)
    assert metric.sort_key(1.0) < metric.sort_key(0.5)
    assert corpus_score("length_error", ["ab"], [["a"], ["ab"]]).value == 0, "the nearest reference counts"


def test_listing_metrics_imports_neither_torch_nor_sacrebleu() -> None:
    program = (
        "import sys; from regard.evaluation.metrics import METRICS; [each.name for _, each in METRICS.items()]; "
        "sys.exit('torch' in sys.modules or 'sacrebleu' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
