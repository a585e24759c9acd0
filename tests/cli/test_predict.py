"""regard predict and the verbs of tasks."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from regard.cli import app
from regard.errors import RegardError
from regard.loading import predictor_of
from regard.runs.bundle import Bundle, save_bundle


@pytest.fixture
def folder(bundle: Bundle, tmp_path: Path) -> Path:
    """A run for translation."""
    (tmp_path / "run").mkdir()
    save_bundle(tmp_path / "run", bundle)
    return tmp_path / "run"


def invoke(*arguments: object, give: str | None = None) -> Result:
    done = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False, input=give)
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("verb", ["predict", "translate"])
def test_several_texts_are_translated(bundle: Bundle, folder: Path, verb: str) -> None:
    expected = [predictor_of(bundle).translate(text, beam=2).text for text in ("the cat", "a dog")]
    given = [verb, folder, "the cat", "a dog", "--beam", 2, "--engine", "torch"]
    assert invoke(*given).stdout.splitlines() == expected
    records = [json.loads(line) for line in invoke(*given, "--json", "--scores").stdout.splitlines()]
    assert [(each["source"], each["text"]) for each in records] == list(
        zip(("the cat", "a dog"), expected, strict=True)
    )
    assert all(each["token_scores"] for each in records)
    lines = invoke(verb, folder, "-", "--beam", 2, "--engine", "torch", give="the cat\na dog\n").stdout
    assert lines.splitlines() == expected


def test_the_beam_grows_to_as_many_outputs_as_are_returned(folder: Path) -> None:
    assert len(invoke("translate", folder, "the cat", "--nbest", 8).stdout.splitlines()) == 8
    with pytest.raises(RegardError, match="beam: 2 is too small to return the best 8"):
        invoke("translate", folder, "the cat", "--nbest", 8, "--beam", 2)


def test_outputs_are_numbered_where_there_are_several_for_each_of_several(folder: Path) -> None:
    lines = invoke("translate", folder, "the cat", "a dog", "--nbest", 2).stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["1", "1", "2", "2"]


@pytest.mark.parametrize("verb", ["classify", "tag", "caption", "generate", "fill"])
def test_another_tasks_verb_is_refused_and_the_right_one_named(folder: Path, verb: str) -> None:
    with pytest.raises(RegardError, match=r"run: this run is for translation; use regard translate\.$"):
        invoke(verb, folder, "the cat")


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
        (["the cat", "--paragraphs"], "--paragraphs, --kind and --column are for files"),
        (["the cat", "--to", "de"], "to: there is no 'de'"),
        (["{file}", "--nbest", "2", "-o", "{file}.out"], "--nbest, --scores and --alignment are for texts"),
        (["the cat", "--max-tokens", "5"], "max_tokens: this does not apply to a run for translation"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(folder: Path, inputs: list[str], message: str) -> None:
    file = folder.parent / "texts.txt"
    file.write_text("the cat\n")
    with pytest.raises(RegardError, match=message):
        invoke("translate", folder, *(each.format(file=file) for each in inputs))


def test_the_language_of_a_file_is_not_a_decoding_option(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("the cat\n")
    invoke("translate", folder, tmp_path / "texts.txt", "-o", tmp_path / "out.txt", "--to", "de", "--beam", 1)
    assert (tmp_path / "out.txt").read_text().count("\n") == 1
