"""Commands parse, call and print: no function of the command line is long."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent.parent / "src" / "regard" / "cli"
MAX_LINES = 60  # the signature included


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_no_function_is_longer_than_60_lines(path: Path) -> None:
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lengths = {each.name: (each.end_lineno or each.lineno) - each.lineno + 1 for each in functions}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}
