"""regard plugins."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard import plugins
from regard.cli import app
from regard.errors import RegardError
from regard.inference.search.base import SEARCHES
from regard.plugins import check_available
from regard.registry import AXES
from regard.tasks.base import TASKS
from tests.cli.processes import run_regard


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "my_search.py"
    path.write_text(
        "from regard.inference.search.base import SEARCHES\n\n"
        "@SEARCHES.register('my-search')\nclass MySearch:\n    pass\n"
    )
    yield path
    SEARCHES._entries.pop("my-search", None)


def test_every_axis_is_listed_with_the_origin_of_its_names(plugin: Path) -> None:
    done = CliRunner().invoke(app, ["plugins", "--json", "--plugin", str(plugin)], catch_exceptions=False)
    found = {
        each["axis"]: {entry["name"]: entry["origin"] for entry in each["extensions"]}
        for each in json.loads(done.stdout)
    }
    assert {"task", "metric", "search", "reader", "document", "loss", "score", "normalizer"} <= set(found)
    assert set(found) == set(AXES)
    assert list(found["task"]) == TASKS.names()
    assert set(found["task"].values()) == {"built-in"}
    assert found["search"]["my-search"] == str(plugin)
    text = CliRunner().invoke(app, ["plugins"], catch_exceptions=False).stdout
    assert f"  my-search: {plugin}" in text
    assert "  built-in: beam, " in text


def test_checking_a_runs_plugins_imports_the_registry_of_their_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = AXES["search"]
    monkeypatch.delitem(AXES, "search")
    monkeypatch.setattr("importlib.import_module", lambda name: AXES.__setitem__("search", registry))
    plugins.check_available({"search.beam": "x.py"}, "run")


def test_missing_plugins_are_named_together_and_those_of_training_only_for_training(tmp_path: Path) -> None:
    required = {"score.mine": "/elsewhere/score.py", "metric.mine": "a-package 1.0"}
    with pytest.raises(RegardError) as caught:
        check_available(required, "run", training=True)
    assert str(caught.value) == (
        "run: this run needs the plugins score.mine, metric.mine, which are missing; load its file with "
        "--plugin /elsewhere/score.py and install a-package 1.0."
    )
    with pytest.raises(RegardError, match=r"needs the plugin score\.mine, which is missing; load its file"):
        check_available(required, "run")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "from regard.evaluation.metrics import METRICS\nfrom regard.evaluation.metrics.bleu import Bleu\n"
            "@METRICS.register('bleu')\nclass Mine(Bleu):\n    pass\n",
            "plugin.py: there is already a metric named 'bleu', in regard/evaluation/metrics/bleu.py; rename yours.",
        ),
        (
            "from regard.tasks.base import TASKS\nfrom regard.tasks.translation import Translation\n"
            "@TASKS.register('mine')\nclass Mine(Translation):\n    name, verb = 'mine', 'train'\n",
            "task mine: its verb 'train' is another command; choose another verb.",
        ),
    ],
)
def test_names_of_built_in_extensions_and_commands_are_refused(tmp_path: Path, code: str, message: str) -> None:
    path = tmp_path / "plugin.py"
    path.write_text(code)
    command = [sys.executable, "-m", "regard", "--plugin", str(path), "plugins"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_an_error_in_a_plugin_is_not_called_a_bug_of_regard(tmp_path: Path) -> None:
    plugin, text = tmp_path / "failing.py", tmp_path / "text.txt"
    plugin.write_text(
        "from regard.evaluation.metrics import METRICS, MeanMetric\n"
        "@METRICS.register('failing')\nclass Failing(MeanMetric):\n"
        "    summary, task, higher_is_better = 'x', 'translation', True\n"
        "    def sentence_score(self, output, reference):\n        return undefined\n"
    )
    text.write_text("a\nb\n")
    files = ("--outputs", text, "--reference", text)
    done = run_regard("--plugin", plugin, "evaluate", *files, "--metric", "failing")
    assert done.returncode == 70
    assert done.stderr.splitlines()[-1] == f"regard: the plugin {plugin} failed; the lines above show where."


def test_outputs_never_overwrite_inputs(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a\nb\n")
    for option in ("-o", "--plot"):
        done = run_regard("evaluate", "--outputs", text, "--reference", text, option, text)
        assert done.returncode == 2
        assert f"{option}: {text} is one of the input files; name another one." in done.stderr
    assert text.read_text() == "a\nb\n"
