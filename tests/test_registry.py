"""Registries: names without imports, duplicates refused, unknown names answered with the nearest."""

import importlib
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
                color = "red"
                taste = "sweet"
            """
        )
    )
    (package / "global_.py").write_text(
        dedent(
            """
            from regard.registry import AXES
            from fruit_package.red_apple import RedApple

            @AXES["fruit"].register("global")
            class Everything(RedApple):
                color, size = "green", 3
                weight: int = 5
            """
        )
    )
    (package / "base.py").write_text("class Fruit: pass")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Registry("fruit", "fruit_package", deferred=True)
    del AXES["fruit"]
    for name in [name for name in sys.modules if name.startswith("fruit_package")]:
        del sys.modules[name]


def test_names_are_known_without_imports(registry: "Registry[type]") -> None:
    assert registry.names() == ["global", "red-apple"]
    assert "fruit_package.red_apple" not in sys.modules
    assert registry.get("red-apple").__name__ == "RedApple"
    assert "fruit_package.red_apple" in sys.modules


def test_names_are_in_the_order_of_files_whichever_was_imported_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "herb_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for name in ("basil", "mint", "thyme"):
        (package / f"{name}.py").write_text(
            f"from regard.registry import AXES\n\n\n@AXES['herb'].register('{name}')\nclass Herb: pass\n"
        )
    monkeypatch.syspath_prepend(str(tmp_path))
    herbs: Registry[type] = Registry("herb", "herb_package")
    try:
        herbs.add("anise", type("Anise", (), {}))
        importlib.import_module("herb_package.thyme")
        assert herbs.names() == ["basil", "mint", "thyme", "anise"]
    finally:
        del AXES["herb"]


def test_a_declaration_is_read_without_importing_its_class(registry: "Registry[type]") -> None:
    apple, everything = registry.declaration("red-apple"), registry.declaration("global")
    assert (apple.class_name, apple.aliases) == ("RedApple", ("apple",))
    assert everything.own == {"color": "green", "size": 3, "weight": 5}
    assert everything.constants == {"color": "green", "size": 3, "weight": 5, "taste": "sweet"}
    assert not [name for name in sys.modules if name.startswith("fruit_package.")]
    assert registry.exported("Everything") is registry.get("global")
    with pytest.raises(AttributeError, match="no attribute 'Pear'"):
        registry.exported("Pear")


def test_the_declaration_of_a_plugin_is_read_from_its_class(registry: "Registry[type]", tmp_path: Path) -> None:
    file = tmp_path / "lemon.py"
    content = "from regard.registry import AXES\n@AXES['fruit'].register('lemon')\nclass Lemon: color = 'yellow'\n"
    file.write_text(content)
    plugins.load_file(file)
    assert registry.declaration("lemon").own["color"] == "yellow"
    assert registry.declaration("lemon").class_name == "Lemon"


def test_an_alias_of_an_unimported_extension_is_refused(registry: "Registry[type]", tmp_path: Path) -> None:
    file = tmp_path / "pear.py"
    file.write_text("from regard.registry import AXES\n@AXES['fruit'].register('apple')\nclass Pear: pass\n")
    with pytest.raises(
        RegardError, match=r"pear\.py: 'apple' is another name of the fruit 'red-apple', in .*red_apple"
    ):
        plugins.load_file(file)
    assert "fruit_package.red_apple" not in sys.modules


def test_an_alias_finds_its_extension(registry: "Registry[type]") -> None:
    assert registry.get("apple") is registry.get("red-apple")
    assert registry.canonical("apple") == "red-apple"
    assert registry.aliases("red-apple") == ["apple"]


def test_an_unknown_name_suggests_the_nearest(registry: "Registry[type]") -> None:
    with pytest.raises(RegardError, match="did you mean 'red-apple'"):
        registry.get("red-aple")
    with pytest.raises(RegardError, match="there are global, red-apple"):
        registry.get("xyz")


@pytest.mark.parametrize("name", ["red-apple", "apple"])
def test_a_duplicate_is_refused_and_both_files_are_named(registry: "Registry[type]", name: str, tmp_path: Path) -> None:
    registry.get("red-apple")
    file = tmp_path / "pear.py"
    file.write_text(f"from regard.registry import AXES\n@AXES['fruit'].register({name!r})\nclass Pear: pass\n")
    with pytest.raises(RegardError, match=r"pear\.py: there is already a fruit named .*red_apple\.py"):
        plugins.load_file(file)


@pytest.mark.parametrize("name", ["", "two words", "-x", "a/b"])
def test_an_impossible_name_is_refused(registry: "Registry[type]", name: str) -> None:
    with pytest.raises(RegardError, match="is no name for a fruit; use letters and digits"):
        registry.register(name)(type("Fruit", (), {}))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\n1 / 0\n", "line 2: it cannot be imported .ZeroDivisionError"),
        ("import sys\nsys.exit(3)\n", "SystemExit"),
    ],
)
def test_a_plugin_that_fails_is_reported_with_its_line(tmp_path: Path, code: str, message: str) -> None:
    file = tmp_path / "failing.py"
    file.write_text(code)
    with pytest.raises(RegardError, match=message):
        plugins.load_file(file)


def test_a_plugin_file_registers(registry: "Registry[type]", tmp_path: Path) -> None:
    file = tmp_path / "plum.py"
    file.write_text("from regard.registry import AXES\n@AXES['fruit'].register('plum')\nclass Plum: pass\n")
    plugins.load_file(file)
    plugins.load_file(file)  # twice does no harm
    plugins.load_file(tmp_path / ".." / tmp_path.name / "plum.py")  # nor by another path
    assert registry.names() == ["global", "red-apple", "plum"]
    assert registry.origin("plum").file == str(file)
    assert plugins.required_plugins({"a": {"fruit": ["plum"], "name": "plum"}}) == {"fruit.plum": str(file)}
    assert plugins.required_plugins({"a": "peach"}) == {}
    plugins.check_available({"fruit.plum": str(file)}, "run")
    with pytest.raises(RegardError, match=r"run: this run needs the plugin fruit.cherry.*--plugin /some.*\.py"):
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
