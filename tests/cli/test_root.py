"""The verbs of tasks are commands, plugins are loaded wherever --plugin is, renamed options are named."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard.cli import app
from regard.cli.root import split_plugins
from regard.errors import RegardError
from regard.renames import OPTIONS
from regard.tasks.base import TASKS, all_tasks
from tests.cli.processes import regard

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


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_verb_of_a_task_is_a_command_and_in_the_help() -> None:
    listed = [line.split()[0] for line in run("--help").splitlines() if line.startswith("  ")]
    for task in all_tasks():
        assert task.verb in listed
        assert "Usage: " in run(task.verb, "--help")
    assert "predict" in listed


@pytest.mark.parametrize("before", [True, False], ids=["before the command", "after it"])
def test_the_verb_of_a_plugins_task_is_a_command(plugin: Path, before: bool) -> None:
    given = ["--plugin", str(plugin)]
    command = [*given, "rephrase", "--help"] if before else ["rephrase", *given, "--help"]
    done = regard(*command)
    assert done.returncode == 0, done.stderr
    assert "Text to the same in other words." in done.stdout
    assert "--glossary" in done.stdout
    assert "  rephrase  " in regard(f"--plugin={plugin}", "--help").stdout


def test_plugins_are_found_wherever_they_are_named() -> None:
    assert split_plugins(["--plugin", "a.py", "translate", "run", "--plugin=b.py", "x", "--", "--plugin"]) == (
        ["translate", "run", "x", "--", "--plugin"],
        ["a.py", "b.py"],
    )
    with pytest.raises(RegardError, match="--plugin: name a Python file"):
        split_plugins(["translate", "--plugin"])


def test_a_plugin_that_is_not_there_ends_in_one_sentence(tmp_path: Path) -> None:
    done = regard("plugins", "--plugin", "none.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("regard: --plugin: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("old", [name for name in OPTIONS if name.startswith("--") and name != "--symmetrise"])
def test_a_renamed_option_gets_an_error_that_names_the_new_one(old: str) -> None:
    with pytest.raises(RegardError) as caught:
        run("translate", "run", "text", old, "1")
    assert str(caught.value) == f"{old}: this option is now called {OPTIONS[old]}."


def test_a_renamed_option_ends_with_exit_code_2() -> None:
    done = regard("align", "run", "pairs.tsv", "--symmetrise=union")
    assert done.returncode == 2
    assert done.stderr == "regard: --symmetrise: this option is now called --symmetrize.\n"
