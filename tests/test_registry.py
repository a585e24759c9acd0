"""Registries: names without imports, duplicates refused, unknown names answered with the nearest."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from regard import plugins
from regard.errors import RegardError
from regard.registry import AXES, Registry


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["Registry[type]"]:
    package = tmp_path / "fruit_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "red_apple.py").write_text(
        dedent(
            """
            from regard.registry import AXES

            @AXES["fruit"].register("red-apple", aliases=("apple",))
            class RedApple:
                pass
            """
        )
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Registry("fruit", "fruit_package", deferred=True)
    del AXES["fruit"]
    for name in [name for name in sys.modules if name.startswith("fruit_package")]:
        del sys.modules[name]


def test_names_are_known_before_anything_is_imported(registry: "Registry[type]") -> None:
    assert registry.names() == ["red-apple"]
    assert "fruit_package.red_apple" not in sys.modules
    assert registry.get("red-apple").__name__ == "RedApple"
    assert "fruit_package.red_apple" in sys.modules


def test_an_alias_finds_it(registry: "Registry[type]") -> None:
    assert registry.get("apple") is registry.get("red-apple")
    assert registry.canonical("apple") == "red-apple"
    assert registry.aliases("red-apple") == ["apple"]


def test_an_unknown_name_gets_the_nearest(registry: "Registry[type]") -> None:
    with pytest.raises(RegardError, match="did you mean 'red-apple'"):
        registry.get("red-aple")
    with pytest.raises(RegardError, match="there are red-apple"):
        registry.get("xyz")


@pytest.mark.parametrize("name", ["red-apple", "apple"])
def test_a_duplicate_is_refused_and_both_files_are_named(registry: "Registry[type]", name: str, tmp_path: Path) -> None:
    registry.get("red-apple")
    file = tmp_path / "pear.py"
    file.write_text(f"from regard.registry import AXES\n@AXES['fruit'].register({name!r})\nclass Pear: pass\n")
    with pytest.raises(RegardError, match=r"pear\.py: there is already a fruit named .*red_apple\.py"):
        plugins.load_file(file)


def test_a_plugin_file_registers(registry: "Registry[type]", tmp_path: Path) -> None:
    file = tmp_path / "plum.py"
    file.write_text("from regard.registry import AXES\n@AXES['fruit'].register('plum')\nclass Plum: pass\n")
    plugins.load_file(file)
    plugins.load_file(file)  # twice does no harm
    assert registry.names() == ["red-apple", "plum"]
    assert registry.origin("plum").file == str(file)
    assert plugins.required_by({"a": {"b": ["plum"]}}) == {"fruit.plum": str(file)}
    assert plugins.required_by({"a": "peach"}) == {}
    plugins.check_available({"fruit.plum": str(file)}, "run")
    with pytest.raises(RegardError, match=r"run: this run needs the plugin fruit.cherry.*--plugin cherry\.py"):
        plugins.check_available({"fruit.cherry": "/somewhere/cherry.py"}, "run")
    with pytest.raises(RegardError, match=r"install cherries 1\.0"):
        plugins.check_available({"fruit.cherry": "cherries 1.0"}, "run")


@pytest.mark.parametrize(
    ("content", "what"),
    [("import nothing_of_that_name", "ModuleNotFoundError"), ("1 +", "SyntaxError"), (None, "is not a file")],
)
def test_a_broken_plugin_is_one_sentence(content: str | None, what: str, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    if content is not None:
        file.write_text(content)
    with pytest.raises(RegardError, match=what):
        plugins.load_file(file)
