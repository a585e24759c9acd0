"""regard predict and the verbs of tasks."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from regard.cli import app
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.errors import RegardError
from regard.loading import load, predictor_from_bundle
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle, new_model, save_bundle
from tests.bundles import random_bundle


@pytest.fixture
def run(bundle: Bundle, tmp_path: Path) -> Path:
    """A run for translation."""
    (tmp_path / "run").mkdir()
    save_bundle(tmp_path / "run", bundle)
    return tmp_path / "run"


def invoke(*arguments: object, stdin: str | None = None) -> Result:
    done = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False, input=stdin)
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("verb", ["predict", "translate"])
def test_several_texts_are_translated(bundle: Bundle, run: Path, verb: str) -> None:
    expected = [predictor_from_bundle(bundle).translate(text, beam=2).text for text in ("the cat", "a dog")]
    arguments = [verb, run, "the cat", "a dog", "--beam", 2, "--engine", "torch"]
    assert invoke(*arguments).stdout.splitlines() == expected
    records = [json.loads(line) for line in invoke(*arguments, "--json", "--scores").stdout.splitlines()]
    assert [(each["source"], each["text"]) for each in records] == list(
        zip(("the cat", "a dog"), expected, strict=True)
    )
    assert all(each["token_scores"] for each in records)
    lines = invoke(verb, run, "-", "--beam", 2, "--engine", "torch", stdin="the cat\na dog\n").stdout
    assert lines.splitlines() == expected


def test_the_beam_is_widened_to_nbest_unless_it_is_set(run: Path) -> None:
    assert len(invoke("translate", run, "the cat", "--nbest", 8).stdout.splitlines()) == 8
    with pytest.raises(RegardError, match="beam: 2 is too small to return the best 8"):
        invoke("translate", run, "the cat", "--nbest", 8, "--beam", 2)


def test_nbest_outputs_of_several_texts_are_numbered(run: Path) -> None:
    lines = invoke("translate", run, "the cat", "a dog", "--nbest", 2).stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["1", "1", "2", "2"]


@pytest.mark.parametrize("verb", ["classify", "tag", "caption", "generate", "fill"])
def test_the_verb_of_another_task_is_refused_and_the_right_one_named(run: Path, verb: str) -> None:
    with pytest.raises(RegardError, match=r"run: this run is for translation; use regard translate\.$"):
        invoke(verb, run, "the cat")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "there is nothing to translate"),
        (["the cat", ""], "there is nothing to translate"),
        (["the cat", "{file}"], "this is a file among texts"),
        (["{file}", "{file}"], "one file at a time"),
        (["the cat", "-"], "lines of input come alone"),
        (["none.txt"], "there is no such file"),
        (["the cat", "-o", "x.txt"], "--output: it is for files"),
        (["the cat", "--paragraphs"], "--paragraphs, --format and --column are for files"),
        (["the cat", "--to", "de"], "to: there is no 'de'"),
        (["{file}", "--nbest", "2", "-o", "{file}.out"], "--nbest, --scores and --alignment are for texts"),
        (["the cat", "--max-tokens", "5"], "max_tokens: this does not apply to a run for translation"),
    ],
)
def test_invalid_combinations_of_inputs_and_options_are_refused(run: Path, inputs: list[str], message: str) -> None:
    file = run.parent / "texts.txt"
    file.write_text("the cat\n")
    with pytest.raises(RegardError, match=message):
        invoke("translate", run, *(each.format(file=file) for each in inputs))


def test_the_language_of_a_file_is_not_a_decoding_option(run: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("the cat\n")
    invoke("translate", run, tmp_path / "texts.txt", "-o", tmp_path / "out.txt", "--to", "de", "--beam", 1)
    assert (tmp_path / "out.txt").read_text().count("\n") == 1


def test_an_encoder_without_a_head_predicts_vectors(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    bundle = random_bundle(subwords, "transformer", "bahdanau")
    settings = ModelSettings.parse(
        {"encoder": bundle.description.model.encoder.model_dump(), "decoder": {"kind": "none"}, "tie": "none"}
    )
    model = new_model(settings, subwords, subwords)
    description = bundle.description.model_copy(update={"model": settings})
    save_bundle(tmp_path, replace(bundle, description=description, model=model.eval()))
    printed = invoke("predict", tmp_path, "the cat", "a dog", "--json").stdout
    assert printed == invoke("embed", tmp_path, "the cat", "a dog", "--json").stdout
    vectors = [json.loads(line)["vector"] for line in printed.splitlines()]
    results = load(tmp_path).predict(["the cat", "a dog"])
    for vector, result in zip(vectors, results, strict=True):
        np.testing.assert_allclose(vector, result.vector, atol=1e-6)
        assert abs(float(np.linalg.norm(result.vector)) - 1) < 1e-5
