"""Every function of the C library has a comment right above its definition; test_abi.py checks those in regard.h."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard import native

FILES = sorted([*native.FOLDER.glob("*.c"), *native.FOLDER.glob("*.h")])
DEFINITION = re.compile(r"^[A-Za-z_][\w *]*?(\w+)\([^;{}]*\)\s*\{", re.M)  # at the start of a line, with a body
COMMENT_AT_END = re.compile(r"^/\*(?! ----)(?:(?!\*/).)*\*/\n\Z", re.M | re.S)  # not a section's title


def definitions(source: str) -> Iterator[tuple[str, re.Match[str] | None]]:
    """Each function's name, and the comment above it."""
    for definition in DEFINITION.finditer(source):
        yield definition[1], COMMENT_AT_END.search(source[: definition.start()])


def undocumented(source: str) -> list[str]:
    return [name for name, comment in definitions(source) if comment is None]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_function_has_a_comment(path: Path) -> None:
    assert undocumented(path.read_text()) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_removed_comment_is_noticed(path: Path) -> None:
    source = path.read_text()
    for name, comment in definitions(source):
        assert comment is not None, name
        assert undocumented(source[: comment.start()] + source[comment.end() :]) == [name]


@pytest.mark.parametrize(
    "above",
    ["", "/* Twice x. */\n\n", "/* ---- numbers ---- */\n", "int y; /* another number */\n", "// Twice x.\n"],
    ids=["none", "empty line", "section title", "comment of the line above", "line comment"],
)
def test_other_text_is_not_a_comment_of_the_function(above: str) -> None:
    source = above + "static inline int *twice(int x,\n                         int y) { return 0; }\n"
    assert undocumented(source) == ["twice"]
    assert undocumented("/* Twice x. */\n" + source.removeprefix(above)) == []


def test_all_exported_functions_are_found() -> None:
    declared = re.findall(r"^REGARD_API [\w *]*?(\w+)\(", (native.FOLDER / "regard.h").read_text(), re.M)
    defined = {name for path in FILES for name, _ in definitions(path.read_text())}
    assert len(declared) > 20
    assert defined >= set(declared)
