"""The rules of ARCHITECTURE.md: a lower folder never imports a higher one, and nothing is unpickled."""

import ast
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

from regard.data.dataset_kinds.base import DatasetKind
from regard.data.media.base import MEDIA_PROCESSORS
from regard.data.pair_dataset import PairDataset
from regard.data.targets.base import TARGETS
from regard.evaluation.metrics._forecast import ForecastMetric
from regard.models.settings import SOURCES
from regard.registry import Registry
from regard.tasks.base import TASKS, Task, all_tasks
from regard.training.loss import MainLoss

SOURCE = Path(__file__).parent.parent / "src" / "regard"

# Each package may import these and itself. Only cli and serving may import all.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "registry": {"errors"},
    "plugins": {"errors", "registry"},
    "renames": set(),
    "settings": {"errors", "registry", "renames"},
    "special_tokens": set(),
    "native": {"errors"},
    "attention": {"errors", "registry", "native"},
    "models": {"errors", "registry", "attention", "native", "settings", "special_tokens"},
    "data": {"errors", "registry", "attention", "models", "settings", "special_tokens"},
}
ORDER = [
    *("alignment", "runs", "interpret", "views", "inference", "documents"),
    *("tasks", "loading", "evaluation", "interop", "training"),
]
LOWEST = set(MAY_IMPORT)
for position, package in enumerate(ORDER):
    MAY_IMPORT[package] = LOWEST | set(ORDER[:position])
UNRESTRICTED = {"cli", "serving", "__main__"}

# The attention reference and the C interface depend on nothing but errors.
STANDALONE = ["attention/reference.py", "native/abi.py"]


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


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_lower_folder_never_imports_a_higher_one(path: Path) -> None:
    package = package_of(path)
    if package in UNRESTRICTED or package == "__init__":
        return
    assert package in MAY_IMPORT, f"{package} is missing in MAY_IMPORT and ARCHITECTURE.md"
    imported = {name.split(".")[1] for name in imports(path) if "." in name}
    forbidden = imported - MAY_IMPORT[package] - {package, "__version__"}
    assert not forbidden, f"{path.relative_to(SOURCE)} imports {sorted(forbidden)}"


def test_the_import_order_has_no_cycles() -> None:
    ordered: set[str] = set()
    while len(ordered) < len(MAY_IMPORT):
        ready = {package for package, lower in MAY_IMPORT.items() if package not in ordered and lower <= ordered}
        assert ready, "a cycle"
        ordered |= ready


def dependencies() -> dict[str, set[str]]:
    """The modules that each module imports when it runs, at its top or in a function."""
    modules = {".".join(("regard", *path.relative_to(SOURCE).with_suffix("").parts)): path for path in FILES}
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        tree = ast.parse(path.read_text())
        typing = [
            node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        ]
        for condition in typing:
            condition.body = []
        imported: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                imported |= {each if each in modules else node.module for each in names}
        found[name] = (imported & modules.keys()) - {name}
    return found


def test_no_modules_import_each_other() -> None:
    """Not even inside functions: remove modules without remaining imports until none remains."""
    remaining = dependencies()
    while leaves := [name for name, needed in remaining.items() if not needed & remaining.keys()]:
        for name in leaves:
            del remaining[name]
    cycle = {name for name in remaining if any(name in needed for needed in remaining.values())}
    assert not cycle, f"a cycle is among {sorted(cycle)}"


@pytest.mark.parametrize("name", STANDALONE)
def test_standalone_modules_import_only_errors(name: str) -> None:
    assert imports(SOURCE / name) <= {"regard.errors", "regard.errors.RegardError"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_is_unpickled(path: Path) -> None:
    text = path.read_text()
    assert "pickle" not in text.replace("allow_pickle=False", "")
    if path.name == "fairseq.py":  # a converter by itself, which opens a checkpoint with its weights alone
        assert text.count("torch.load(") == text.count("weights_only=True)") == 1
    else:
        assert "torch.load(" not in text
    assert "eval(" not in text.replace("ast.literal_eval(", "").replace(".eval(", "")


def test_files_stay_short() -> None:
    too_long = {str(path.relative_to(SOURCE)): n for path in FILES if (n := len(path.read_text().splitlines())) > 400}
    assert not too_long, "split along a concept"


# --- tasks and modalities ---------------------------------------------------------------------------------------

# Only these may have conditions on the name of a task or a modality.
MAY_BRANCH = ("tasks/", "models/stems/", "models/settings/sources/", "data/media")
VERBS = {task.verb for task in all_tasks()}


def _classes(folder: str) -> set[type]:
    """The classes of the modules of a folder."""
    modules = [f"regard.{folder.replace('/', '.')}.{file.stem}" for file in (SOURCE / folder).glob("[!_]*.py")]
    return {each for name in modules for each in vars(importlib.import_module(name)).values() if inspect.isclass(each)}


def _extension_classes() -> set[str]:
    """The names of classes that stand for one task or one modality: a condition on them is one on its name."""
    registries: tuple[Registry[Any], ...] = (TASKS, SOURCES, MEDIA_PROCESSORS, TARGETS)
    found = {cls for registry in registries for _, cls in registry.items()} | {ForecastMetric, PairDataset, Task}
    found |= {cls for cls in _classes("data/dataset_kinds") if issubclass(cls, DatasetKind)}
    found |= {cls for cls in _classes("training/losses") if issubclass(cls, MainLoss)}
    found |= {cls for cls in _classes("inference/pipelines") if cls.__name__.endswith("Pipeline")}
    return {cls.__name__ for cls in found if not getattr(cls, "_is_protocol", False)} - {"MainLoss"}


EXTENSION_CLASSES = _extension_classes()


def branches(tree: ast.AST) -> list[ast.expr]:
    """The conditions of a module, and the subjects of its match statements."""
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            found.append(node.test)
        elif isinstance(node, ast.comprehension):
            found += node.ifs
        elif isinstance(node, ast.match_case):
            found += [each.value for each in ast.walk(node.pattern) if isinstance(each, ast.MatchValue)]
        elif isinstance(node, ast.BoolOp | ast.Compare):
            found.append(node)
    return found


def names_in(node: ast.AST) -> set[str]:
    """The names and attributes of an expression, and each part of `a_b`."""
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    found |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    return found | {part for name in found for part in name.split("_")}


def condition_names(condition: ast.expr) -> list[str]:
    """The names of tasks and modalities, and the classes that stand for one, that a condition tests for."""
    tasks, modalities = {*TASKS.names(), *VERBS}, set(SOURCES.names())
    found = []
    for node in ast.walk(condition):
        if isinstance(node, ast.Compare):
            constants = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
            about = names_in(node)
            named = constants & tasks if about & {"task", "verb", "name", "predicts"} else set()
            is_source = about & {"source", "medium", "reads"} and "kind" in about
            named |= constants & modalities if is_source or "modality" in about else set()
            found += [str(each) for each in named]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            classes = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
            found += sorted(classes & EXTENSION_CLASSES)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_condition_tests_for_a_task_or_modality_by_name(path: Path) -> None:
    name = str(path.relative_to(SOURCE))
    if name.startswith(MAY_BRANCH):
        return
    found = [(node.lineno, what) for node in branches(ast.parse(path.read_text())) for what in condition_names(node)]
    assert not found, f"{name}: {sorted(set(found))}; ask the task or the source settings instead"


@pytest.mark.parametrize(
    "code",
    [
        'if run.task == "translation": pass',
        'x = 1 if settings.task in ("tagging", "span_qa") else 2',
        'if model.source.kind == "image": pass',
        'if modality != "text": pass',
        "if isinstance(source, ImageSource): pass",
        'match task.name:\n    case "captioning": pass',
        '[each for each in tasks if each.name == "speech"]',
        'a = model.source.kind == "audio"',
        "if isinstance(source, SeriesSource): pass",
        "if isinstance(run.target, SeriesTarget | Labels): pass",
        "x = 1 if isinstance(pipeline, ForecastPipeline) else 2",
        "if issubclass(metric, ForecastMetric): pass",
        "if not isinstance(dataset, PairDataset): pass",
        'if verb in ("fill", "embed"): pass',
        'if decoder.predicts == "tagging": pass',
    ],
)
def test_a_condition_on_a_name_is_found(code: str) -> None:
    tree = ast.parse(code)
    subjects = [node.subject for node in ast.walk(tree) if isinstance(node, ast.Match)]
    assert any(condition_names(node) or (subjects and isinstance(node, ast.Constant)) for node in branches(tree))


@pytest.mark.parametrize("code", ['if tie == "none": pass', 'if output == "text": pass', "if source.is_text: pass"])
def test_other_conditions_are_allowed(code: str) -> None:
    assert not any(condition_names(node) for node in branches(ast.parse(code)))
