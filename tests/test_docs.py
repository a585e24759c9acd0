"""The documentation is correct: its Python and commands run, its links resolve, extensions are documented."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard.plugins import REGISTRY_MODULES, get_registry
from regard.registry import AXES

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "CONTRIBUTING.md"
# Where the extensions of each axis are documented: its row in CONTRIBUTING's table, a page, the heading above a table.
TABLES = {
    "score": ("score", "docs/attention.md", "Names"),
    "normalizer": ("normalizer", "docs/attention.md", "Names"),
    "extent": ("extent", "docs/attention.md", "Names"),
    "position": ("position, channel attention", "docs/attention.md", "Names"),
    "channel-attention": ("position, channel attention", "docs/attention.md", "Names"),
    "encoder": ("encoder, decoder, head, source", "docs/training.md", "Encoders"),
    "decoder": ("encoder, decoder, head, source", "docs/training.md", "Decoders and heads"),
    "source": ("encoder, decoder, head, source", "docs/training.md", "Sources"),
    "media-processor": ("encoder, decoder, head, source", "docs/training.md", "Sources"),
    "task": ("task", "docs/tasks.md", "Beyond translation"),
    "target": ("target", "docs/tasks.md", "Targets"),
    "metric": ("metric", "docs/training.md", "Judging"),
    "evaluator": ("evaluator", "docs/forecasting.md", "Evaluation"),
    "reader": ("reader of training data", "docs/training.md", "What goes in"),
    "document": ("document format", "docs/translating.md", "From the command line"),
    "search": ("search", "docs/translating.md", "From Python"),
    "engine": ("engine", "docs/translating.md", "Engines"),
    "loss": ("main loss", "docs/training.md", "Losses"),
    "family": ("family of imported models", "docs/interop.md", "Other people's models"),
}
NAMED_BY_SUFFIXES = ("reader", "document")
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


def rows(page: str, heading: str) -> list[str]:
    """The rows of the tables between a heading of a page and the next one, without code."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    sections = dict(re.findall(r"^#+ ([^\n]+)\n(.*?)(?=^#|\Z)", text, re.DOTALL | re.MULTILINE))
    return [line for line in sections[heading].splitlines() if line.startswith("|")]


def guide() -> dict[str, str]:
    """The last column of CONTRIBUTING's table of extensions, by the first."""
    lines = GUIDE.read_text().partition("| to add a |")[2].partition("\n\n")[0].splitlines()[2:]
    return {cells[1].strip(): cells[-2] for cells in (line.split("|") for line in lines)}


def test_every_axis_has_a_table_where_the_guide_says() -> None:
    sources = {path: path.read_text() for path in (ROOT / "src").rglob("*.py")}
    defined = [axis for text in sources.values() for axis in re.findall(r"(?:Registry|Axis)\(\s*\"([\w-]+)\"", text)]
    for module in REGISTRY_MODULES.values():
        importlib.import_module(module)
    assert sorted(defined) == sorted(AXES) == sorted(TABLES)
    assert {row for row, _, _ in TABLES.values()} == set(guide())
    for axis, (row, page, heading) in TABLES.items():
        assert f"`{page}`" in guide()[row], axis
        assert rows(page, heading), axis


@pytest.mark.parametrize("axis", TABLES)
def test_every_extension_is_in_the_table_of_its_axis(axis: str) -> None:
    """By its name, or by all suffixes of its files."""
    registry = get_registry(axis)
    names = registry.builtin_names()
    assert names
    _, page, heading = TABLES[axis]
    named = {each for row in rows(page, heading) for each in re.findall(r"`([^`]+)`", row)}
    suffixes = {name: set(registry.get(name).suffixes) for name in names if axis in NAMED_BY_SUFFIXES}
    assert [name for name in names if name not in named and not (suffixes.get(name) or {name}) <= named] == []
