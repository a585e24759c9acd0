"""Verbs of tasks are commands, --plugin may be anywhere, and renamed options are reported with their new names."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard.cli import app
from regard.cli.root import split_plugins
from regard.errors import RegardError
from regard.renames import OPTIONS
from regard.tasks.base import TASKS, all_tasks
from tests.cli.processes import run_regard

PLUGIN = '''
"""A task in a plugin's file."""
from regard.tasks.base import TASKS, TEXT_SEARCH, Task, sequence_pipeline


@TASKS.register("paraphrase")
class Paraphrase(Task):
    """text to other words."""

    name, verb, output = "paraphrase", "rephrase", "Paraphrase"
    summary = "text to the same in other words"
    options = TEXT_SEARCH
    metrics = ("bleu",)

    def pipeline(self, run):
        return sequence_pipeline(run)
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "paraphrase.py"
    path.write_text(PLUGIN)
    yield path
    TASKS._entries.pop("paraphrase", None)


def invoke(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_verb_of_a_task_is_a_command_listed_in_the_help() -> None:
    listed = [line.split()[0] for line in invoke("--help").splitlines() if line.startswith("  ")]
    for task in all_tasks():
        assert task.verb in listed
        assert "Usage: " in invoke(task.verb, "--help")
    assert "predict" in listed


@pytest.mark.parametrize("before", [True, False], ids=["before the command", "after it"])
def test_the_verb_of_a_plugins_task_is_a_command(plugin: Path, before: bool) -> None:
    option = ["--plugin", str(plugin)]
    command = [*option, "rephrase", "--help"] if before else ["rephrase", *option, "--help"]
    done = run_regard(*command)
    assert done.returncode == 0, done.stderr
    assert "Text to the same in other words." in done.stdout
    assert "--glossary" in done.stdout
    assert "  rephrase  " in run_regard(f"--plugin={plugin}", "--help").stdout


def test_plugin_options_are_accepted_anywhere_before_two_dashes() -> None:
    assert split_plugins(["--plugin", "a.py", "translate", "run", "--plugin=b.py", "x", "--", "--plugin"]) == (
        ["translate", "run", "x", "--", "--plugin"],
        ["a.py", "b.py"],
    )
    with pytest.raises(RegardError, match="--plugin: name a Python file"):
        split_plugins(["translate", "--plugin"])


def test_a_missing_plugin_file_is_reported_in_one_sentence(tmp_path: Path) -> None:
    done = run_regard("plugins", "--plugin", "none.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("regard: --plugin: ")
    assert done.stderr.count("\n") == 1


COMMANDS = {  # that have the new option, where it is not translate
    **{"--symmetrise": "align", "--tokens": "generate", "--raw": "embed", "--picture": "evaluate", "--folder": "train"},
    **dict.fromkeys(("--special", "--channels"), "see"),
    **dict.fromkeys(("--name", "--origin", "--keys", "--log"), "serve"),
}


@pytest.mark.parametrize("old", [name for name in OPTIONS if name.startswith("--")])
def test_a_renamed_option_is_refused_with_its_new_name(old: str) -> None:
    with pytest.raises(RegardError) as caught:
        invoke(COMMANDS.get(old, "translate"), "run", "text", old, "1")
    assert str(caught.value) == f"{old}: this option is now called {OPTIONS[old]}."


def test_a_renamed_option_of_another_command_is_unknown() -> None:
    done = run_regard("translate", "run", "text", "--picture", "x.png")
    assert "No such option" in done.stderr
    assert "now called" not in done.stderr


def test_a_renamed_option_ends_with_exit_code_2() -> None:
    done = run_regard("align", "run", "pairs.tsv", "--symmetrise=union")
    assert done.returncode == 2
    assert done.stderr == "regard: --symmetrise: this option is now called --symmetrize.\n"
