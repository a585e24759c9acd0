"""Plugins: files loaded with `--plugin`, installed packages, and checking which of them a run needs."""

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.registry import AXES, GROUP, Registry, all_entry_points, distribution_name

PREFIX = "regard_plugin_"  # of the module names of loaded files
# Where settings name extensions, if not in a setting called like the axis.
SETTING_NAMES = {"normalizer": "normalize", "channel-attention": "channel_attention"}
COMPONENT_TABLES = {"encoder": "encoder", "decoder": "decoder", "source": "source", "media-processor": "source"}
TRAINING_AXES = ("metric", "loss", "reader")  # not needed to predict with a run
# The module that defines the registry of each axis, imported only when it is needed.
REGISTRY_MODULES = {
    "score": "regard.attention.scores",
    "extent": "regard.attention.extents",
    "normalizer": "regard.attention.normalizers",
    "position": "regard.attention.positions",
    "channel-attention": "regard.attention.channels",
    "encoder": "regard.models.settings.components",
    "decoder": "regard.models.settings.components",
    "source": "regard.models.settings.components",
    "target": "regard.data.targets.base",
    "media-processor": "regard.data.media.base",
    "reader": "regard.data.readers",
    "search": "regard.inference.search.base",
    "engine": "regard.inference.engines.base",
    "document": "regard.documents.document",
    "task": "regard.tasks.base",
    "metric": "regard.evaluation.metrics",
    "evaluator": "regard.evaluation.evaluators.base",
    "family": "regard.interop.family",
    "loss": "regard.training.loss",
}


def load_file(path: Path) -> None:
    """Import a plugin's file, which registers its extensions. Raises RegardError if it cannot be imported."""
    path = path.resolve()
    if not path.is_file():
        raise RegardError(f"--plugin: {path} is not a file.")
    if path.suffix != ".py":
        raise RegardError(f"--plugin: {path} is not a Python file.")
    name = f"{PREFIX}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if isinstance(error, RegardError):
            raise
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f"{path}, line {lines[-1]}" if lines else str(path)
        raise RegardError(f"--plugin: {where}: it cannot be imported ({type(error).__name__}: {error}).") from error


def external_extensions() -> Iterator[tuple[str, str, str]]:
    """Axis, name and origin of every extension that is not built in; installed ones are not imported."""
    known = set()
    for axis, registry in AXES.items():
        for name, origin in registry.external().items():
            known.add((axis, name))
            yield axis, name, str(origin)
    for point in all_entry_points():
        axis, _, name = point.name.partition(".")
        if (axis, name) not in known:
            yield axis, name, distribution_name(point)


def ignored_entry_points() -> list[str]:
    """A sentence for every installed extension that is not used: without an axis, or with a name that is taken."""
    found, used = [], dict[str, str]()
    for point in all_entry_points():
        axis, dot, name = point.name.partition(".")
        where = f"{distribution_name(point)}: {point.name}"
        if not dot or axis not in REGISTRY_MODULES:
            found.append(f"{where} is ignored: its name must begin with an axis, such as metric.")
        elif name in get_registry(axis).builtin_names():
            found.append(f"{where} is ignored: there is a built-in {axis} of this name.")
        elif point.name in used:
            found.append(f"{where} is ignored: {used[point.name]} has it, too.")
        used.setdefault(point.name, distribution_name(point))
    return found


def failing_plugin(error: BaseException) -> str | None:
    """The file of the plugin that an error was raised in, if the innermost frame outside libraries is a plugin's."""
    files = {module.__file__ for name, module in sys.modules.items() if name.startswith(PREFIX)}
    frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return next((file for file in reversed(frames) if file in files), None)


def extensions() -> dict[str, dict[str, str]]:
    """Every axis with the names of its extensions, each with its origin: built-in, a package, a file."""
    found: dict[str, dict[str, str]] = {}
    for axis in REGISTRY_MODULES:
        registry = get_registry(axis)
        builtin = registry.builtin_names()
        external = {name: origin for own, name, origin in external_extensions() if own == axis and name not in builtin}
        found[axis] = {name: external.get(name, "built-in") for name in registry}
    return found


def get_registry(axis: str) -> "Registry[Any]":
    """The registry of an axis, whose module is imported if need be. Raises KeyError if there is no such axis."""
    if axis not in AXES:
        importlib.import_module(REGISTRY_MODULES[axis])
    return AXES[axis]


def required_plugins(settings: Any) -> dict[str, str]:
    """The plugins that settings (plain data) use, as `axis.name`, each with its origin."""
    named = {(path[-2:], value) for path, value in _strings(settings)}
    return {
        f"{axis}.{name}": origin
        for axis, name, origin in external_extensions()
        if any(value == name and _names_axis(path, axis) for path, value in named)
    }


def _names_axis(path: tuple[str, ...], axis: str) -> bool:
    """Whether the setting at the end of a path names an extension of an axis."""
    if axis in COMPONENT_TABLES:
        return path == (COMPONENT_TABLES[axis], "kind")
    return path[-1:] == (SETTING_NAMES.get(axis, axis),)


def check_available(required: dict[str, str], where: str, *, training: bool = False) -> None:
    """Raise RegardError, naming them, if plugins that a run needs are missing. training: those of training, too."""
    missing = {}
    for plugin, origin in required.items():
        axis, _, name = plugin.partition(".")
        if axis in TRAINING_AXES and not training:
            continue
        if axis not in AXES.keys() | REGISTRY_MODULES.keys() or name not in get_registry(axis):
            missing[plugin] = origin
    if missing:
        sources = {
            f"load its file with --plugin {origin}" if origin.endswith(".py") else f"install {origin}": None
            for origin in missing.values()
        }
        verb = "which is missing" if len(missing) == 1 else "which are missing"
        plugins = "plugin" if len(missing) == 1 else "plugins"
        raise RegardError(
            f"{where}: this run needs the {plugins} {', '.join(missing)}, {verb}; {' and '.join(sources)}."
        )


def _strings(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text among plain data, with the names of the tables and the setting that it is in."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _strings(each, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each, path)


__all__ = ["GROUP", "check_available", "extensions", "external_extensions", "load_file", "required_plugins"]
