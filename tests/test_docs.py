"""The documentation is correct: its Python and commands run, its links resolve, extensions are documented."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.plugins import REGISTRY_MODULES, get_registry
from regard.registry import Registry

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_python_examples_run(path: Path, tmp_path: Path) -> None:
    """All blocks of one document, in order, as one program."""
    if code := "\n".join(blocks(path, "python")):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "path",
    [path if path.name == "README.md" else pytest.param(path, marks=pytest.mark.slow) for path in DOCUMENTS],
    ids=lambda path: path.name,
)
def test_commands_run(path: Path, tmp_path: Path) -> None:
    """`regard` commands are run; `make` targets and bench scripts must exist."""
    makefile = (ROOT / "Makefile").read_text()
    for line in "\n".join(blocks(path, "sh")).splitlines():
        command = line.split("#")[0].split()
        if command[:1] == ["regard"]:
            done = subprocess.run(
                [sys.executable, "-m", *command], capture_output=True, text=True, cwd=tmp_path, check=False
            )
            assert done.returncode == 0, (line, done.stderr)
        elif command[:1] == ["make"]:
            assert re.search(rf"^{command[1]}:", makefile, re.MULTILINE), line
        elif command:
            assert command[:2] == ["pip", "install"], f"{path.name}: nobody checks {line!r}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_resolve(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (path.parent / target).exists(), target


def test_the_documented_plan_is_the_printed_one() -> None:
    text = (ROOT / "docs" / "attention.md").read_text()
    code = "\n".join(blocks(ROOT / "docs" / "attention.md", "python"))
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    lines = [line for line in printed.splitlines() if line.startswith(("kernel", "why", "memory", "not"))]
    assert len(lines) >= 4
    for line in lines:
        assert f"    {line}" in text


@pytest.mark.parametrize("axis", REGISTRY_MODULES)
def test_every_extension_is_documented(axis: str) -> None:
    """By its name, or by a suffix of its files."""
    registry: Registry[Any] = get_registry(axis)
    text = "\n".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    names = registry.builtin_names()
    assert names
    known = {name: [name, *getattr(registry.get(name), "suffixes", ())] for name in names}
    assert [name for name in names if not any(f"`{each}`" in text for each in known[name])] == []
