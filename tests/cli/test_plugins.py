"""regard plugins."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard import plugins
from regard.cli import app
from regard.inference.search_algorithm import SEARCHES
from regard.registry import AXES
from regard.tasks.base import TASKS


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "my_search.py"
    path.write_text(
        "from regard.inference.search_algorithm import SEARCHES\n\n"
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
