"""The house stands as ARCHITECTURE.md draws it: a lower folder never imports a higher one, and nothing unpickles."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "regard"

# Each part may import those named and itself. Only cli and serving see everything.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "registry": {"errors"},
    "plugins": {"errors", "registry"},
    "renames": set(),
    "settings": {"errors", "registry", "renames"},
    "special_tokens": set(),
    "sources": {"errors", "settings"},
    "native": {"errors"},
    "attention": {"errors", "registry", "native"},
    "models": {"errors", "registry", "attention", "native", "settings", "sources", "special_tokens"},
    "data": {"errors", "registry", "attention", "models", "settings", "sources", "special_tokens"},
}
ORDER = [
    *("alignment", "runs", "interpret", "views", "inference", "documents"),
    *("tasks", "loading", "evaluation", "interop", "training", "lab"),
]
LOWEST = set(MAY_IMPORT)
for place, part in enumerate(ORDER):
    MAY_IMPORT[part] = LOWEST | set(ORDER[:place])
SEE_EVERYTHING = {"cli", "serving", "__main__"}

# Inside attention: the reference and the kernels' inner loops know nothing of what is built on them.
WITHOUT_OTHERS = ["attention/reference.py", "native/abi.py"]


def imports(path: Path) -> set[str]:
    """The regard modules that a file imports, in full."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where things come from"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return {name for name in found if name == "regard" or name.startswith("regard.")}


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_lower_folder_never_imports_a_higher_one(path: Path) -> None:
    part = part_of(path)
    if part in SEE_EVERYTHING or part == "__init__":
        return
    assert part in MAY_IMPORT, f"{part} has no place in the house yet; give it one in MAY_IMPORT and ARCHITECTURE.md"
    seen = {name.split(".")[1] for name in imports(path) if "." in name}
    beyond = seen - MAY_IMPORT[part] - {part, "__version__"}
    assert not beyond, f"{path.relative_to(SOURCE)} imports {sorted(beyond)}"


def test_the_order_has_no_circles() -> None:
    done: set[str] = set()
    while len(done) < len(MAY_IMPORT):
        ready = {part for part, below in MAY_IMPORT.items() if part not in done and below <= done}
        assert ready, "a circle"
        done |= ready


@pytest.mark.parametrize("name", WITHOUT_OTHERS)
def test_the_foundations_stand_alone(name: str) -> None:
    assert imports(SOURCE / name) <= {"regard.errors", "regard.errors.RegardError"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_is_unpickled(path: Path) -> None:
    text = path.read_text()
    assert "pickle" not in text
    if path.name == "fairseq.py":  # a converter by itself, which opens a checkpoint with its weights alone
        assert text.count("torch.load(") == text.count("weights_only=True)") == 1
    else:
        assert "torch.load(" not in text
    assert "eval(" not in text.replace("ast.literal_eval(", "").replace(".eval(", "")


def test_files_stay_short() -> None:
    long = {str(path.relative_to(SOURCE)): n for path in FILES if (n := len(path.read_text().splitlines())) > 400}
    assert not long, "split along a concept"
