"""Registries: named extensions of one axis, such as scores, tasks or metrics.

Built-in extensions are found by listing a package, so a new one is one new file. Plugins come from
installed packages, through entry points in the group `regard.plugins` that are named by axis (`metric.comet`), or from
files loaded with `--plugin`. Nothing is ever imported because a run's folder names it.
"""

import ast
import contextlib
import difflib
import importlib
import importlib.metadata
import inspect
import pkgutil
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from regard.errors import RegardError

GROUP = "regard.plugins"
NAME = re.compile(r"\w[\w.-]*")  # of an extension
T = TypeVar("T")


class UnknownNameError(RegardError):
    """A name that is not registered. reason: what is wrong, without where the name was given."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.reason = reason


@dataclass(frozen=True)
class Origin:
    """Where an extension comes from. distribution: the installed package, with its version; empty for a file."""

    file: str
    distribution: str = ""
    builtin: bool = False

    def __str__(self) -> str:
        return self.distribution or self.file


@dataclass(frozen=True)
class _Entry(Generic[T]):
    item: T
    origin: Origin


AXES: dict[str, "Registry[object]"] = {}


class Registry(Generic[T]):
    """The extensions of one axis, by name.

    axis: its name, as in `score` or `metric`. package: the modules of its built-in extensions. deferred: these modules
    import PyTorch, so each is imported only when it is needed, and must be named after the extension it defines
    (`scaled_dot.py` for `scaled-dot`, `global_.py` where the name is a keyword of Python; `base.py` and names with a
    leading underscore are helpers); otherwise all are imported on first use, and may define several extensions each.
    helpers: further modules of the package that define no extension. required: attributes that every extension has,
    besides abstract methods.
    """

    def __init__(
        self,
        axis: str,
        package: str,
        *,
        deferred: bool = False,
        helpers: Collection[str] = (),
        required: Collection[str] = (),
    ) -> None:
        if axis in AXES:
            raise ValueError(f"there are two registries for {axis}")
        self.axis, self._package, self._deferred, self._helpers = axis, package, deferred, frozenset(helpers)
        self.required = tuple(required)
        self._entries: dict[str, _Entry[T]] = {}
        self._aliases: dict[str, str] = {}
        self._imported = False
        AXES[axis] = self  # type: ignore[assignment]

    # --- defining extensions ---------------------------------------------------------------------------------------

    def register(self, name: str, *, aliases: tuple[str, ...] = ()) -> Callable[[T], T]:
        """Decorate a class, or call with an object: `@SCORES.register("dot")`."""

        def add(item: T) -> T:
            self.add(name, item, aliases=aliases)
            return item

        return add

    def add(self, name: str, item: T, *, aliases: tuple[str, ...] = ()) -> None:
        """Register one extension. Raises RegardError if the name is taken."""
        origin = self._origin_of(item)
        for each in (name, *aliases):
            if not isinstance(each, str) or not NAME.fullmatch(each):
                raise RegardError(f"{origin.file}: {each!r} is no name for a {self.axis}; use letters and digits.")
            taken = self._origin(each)
            if taken is not None and taken != origin:
                own, other = (taken, origin) if origin.builtin else (origin, taken)
                raise RegardError(
                    f"{own.file}: there is already a {self.axis} named {each!r}, in {other.file}; rename yours."
                )
            if each in self._entries:
                raise ValueError(f"{origin.file}: {self.axis} {each!r} is registered twice")
            if self._deferred and not origin.builtin and (owner := self._declared_alias(each)) is not None:
                raise RegardError(
                    f"{origin.file}: {each!r} is another name of the {self.axis} {owner!r}, in "
                    f"{self._file(self._module(owner))}; rename yours."
                )
        if not origin.builtin:
            self._check_complete(name, item, origin)
        self._entries[name] = _Entry(item, origin)
        self._aliases |= dict.fromkeys(aliases, name)

    def _check_complete(self, name: str, item: T, origin: Origin) -> None:
        """Raise RegardError if a class of a plugin lacks something that every extension of this axis has."""
        abstract: frozenset[str] = getattr(item, "__abstractmethods__", frozenset())
        missing = sorted({*abstract, *(each for each in self.required if not hasattr(item, each))})
        if missing:
            raise RegardError(f"{origin.file}: {self.axis} {name!r} must define {', '.join(missing)}.")

    # --- looking up extensions --------------------------------------------------------------------------------------

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.names() or self._canonical(name) in self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> list[str]:
        """All names: built-in ones, those of loaded plugins and those of installed entry points, none imported."""
        if self._deferred:
            builtin = [_extension_name(module) for module in self._modules()]
        else:
            self._import_all()
            builtin = []
        return list(dict.fromkeys([*builtin, *self._entries, *_entry_points(self.axis)]))

    def builtin_names(self) -> list[str]:
        """The names of built-in extensions."""
        return [name for name in self.names() if (origin := self._origin(name)) is not None and origin.builtin]

    def get(self, name: str) -> T:
        """The extension of this name. Raises RegardError, naming the nearest, if there is none."""
        return self._find(name).item

    def external(self) -> dict[str, Origin]:
        """Extensions that are loaded and not built in, each with its origin."""
        return {name: entry.origin for name, entry in self._entries.items() if not entry.origin.builtin}

    def items(self) -> list[tuple[str, T]]:
        """All of them; imports every one."""
        return [(name, self.get(name)) for name in self.names()]

    def canonical(self, name: str) -> str:
        """The name that an alias stands for. Raises RegardError if there is none."""
        self._find(name)
        return self._canonical(name)

    def origin(self, name: str) -> Origin:
        """Where an extension comes from. Raises RegardError if there is none."""
        return self._find(name).origin

    def alias_of(self, name: str) -> str | None:
        """The extension that a name is another name of, if it is one. Imports none."""
        return self._aliases.get(name) or (self._declared_alias(name) if self._deferred else None)

    def aliases(self, name: str) -> list[str]:
        """Other names of an extension."""
        self._find(name)
        return [alias for alias, target in self._aliases.items() if target == self._canonical(name)]

    def unknown(self, name: str, *, where: str = "") -> UnknownNameError:
        """The error for a name that is not registered."""
        known = self.names()
        near = difflib.get_close_matches(name, [*known, *self._aliases], n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
        return UnknownNameError(where or self.axis, f"there is no {self.axis} {name!r}; {hint}")

    def _find(self, name: str) -> _Entry[T]:
        found = self._entries.get(self._canonical(name))
        if found is None and self._deferred and (module := self._module(name)) is not None:
            importlib.import_module(f"{self._package}.{module}")
            found = self._entries.get(self._canonical(name))
        if found is None:
            self._import_all()
            found = self._entries.get(self._canonical(name))
        if found is None and (point := _entry_points(self.axis).get(name)) is not None:
            self._load(name, point)
            found = self._entries.get(self._canonical(name))
        if found is None:
            raise self.unknown(name)
        return found

    def _load(self, name: str, point: importlib.metadata.EntryPoint) -> None:
        """Import an installed plugin."""
        try:
            point.load()
        except Exception as error:
            raise RegardError(
                f"plugin {self.axis}.{name} of {distribution_name(point)} cannot be imported: "
                f"{type(error).__name__}: {error}"
            ) from error
        if self._canonical(name) not in self._entries:
            raise RegardError(
                f"plugin {self.axis}.{name} of {distribution_name(point)} registers no {self.axis} {name!r}."
            )

    def _canonical(self, name: str) -> str:
        return self._aliases.get(name, name)

    def _origin(self, name: str) -> Origin | None:
        """Where a name is defined, without importing a plugin."""
        if (found := self._entries.get(self._canonical(name))) is not None:
            return found.origin
        if self._deferred and (module := self._module(name)) is not None:
            return Origin(self._file(module), builtin=True)
        return None

    def _module(self, name: str) -> str | None:
        """The built-in module that is named after an extension."""
        module = name.replace("-", "_")
        return next((each for each in (module, f"{module}_") if each in self._modules()), None)

    def _file(self, module: str | None) -> str:
        return f"{self._package.replace('.', '/')}/{module}.py"

    def _origin_of(self, item: T) -> Origin:
        module = getattr(item, "__module__", None) or type(item).__module__
        builtin = str(module).startswith(("regard.", f"{self._package}."))
        if builtin:
            return Origin(f"{str(module).replace('.', '/')}.py", builtin=True)
        try:
            file = inspect.getfile(item if inspect.isclass(item) or inspect.isfunction(item) else type(item))
        except (TypeError, OSError):
            file = str(module)
        return Origin(file, _distribution_of(str(module)))

    @cache  # noqa: B019
    def _modules(self) -> tuple[str, ...]:
        folder = importlib.import_module(self._package)
        names = (each.name for each in pkgutil.iter_modules(folder.__path__))
        helpers = self._helpers | ({"base"} if self._deferred else set())
        return tuple(name for name in names if not name.startswith("_") and name not in helpers)

    # --- reading built-in extensions without importing them ----------------------------------------------------------

    def declaration(self, name: str) -> "Declaration":
        """What the class of an extension declares. A built-in one of a deferred registry is read, not imported."""
        if self._deferred and self._module(name) is not None:
            return self._declarations()[name]
        item = self.get(name)
        classes = inspect.getmro(item) if inspect.isclass(item) else ()
        constants = {key: value for each in reversed(classes) for key, value in vars(each).items()}
        own = dict(vars(item)) if inspect.isclass(item) else {}
        return Declaration(getattr(item, "__name__", name), tuple(self.aliases(name)), constants, own)

    def exported(self, name: str) -> Any:
        """A class of the package by its own name, imported when it is asked for: for `__getattr__` of the package."""
        folder = importlib.import_module(self._package)
        for each in pkgutil.iter_modules(folder.__path__):
            if name in _classes_in(f"{self._package}.{each.name}"):
                return getattr(importlib.import_module(f"{self._package}.{each.name}"), name)
        raise AttributeError(f"module {self._package!r} has no attribute {name!r}")

    @cache  # noqa: B019
    def _declarations(self) -> dict[str, "Declaration"]:
        """The built-in extensions, read from their files."""
        found: dict[str, Declaration] = {}
        for module in self._modules():
            for node in _classes_in(f"{self._package}.{module}").values():
                if (registered := _registration(node)) is not None:
                    name, aliases = registered
                    found[name] = Declaration(node.name, aliases, self._constants(node), _literals(node))
        return found

    def _constants(self, node: ast.ClassDef) -> dict[str, Any]:
        """Literals of a class, and of those of its base classes that are registered here, too."""
        found: dict[str, Any] = {}
        for base in (base.id for base in node.bases if isinstance(base, ast.Name)):
            for module in self._modules():
                inherited = _classes_in(f"{self._package}.{module}").get(base)
                if inherited is not None and _registration(inherited) is not None:
                    found |= self._constants(inherited)
        return found | _literals(node)

    def _declared_alias(self, alias: str) -> str | None:
        return next((name for name, each in self._declarations().items() if alias in each.aliases), None)

    def _import_all(self) -> None:
        if self._imported:
            return
        self._imported = True
        modules = [f"{self._package}.{module}" for module in self._modules()]
        for module in modules:
            importlib.import_module(module)
        # Built-in ones in the order of their files, whichever was imported first; plugins after them.
        order = {f"{module.replace('.', '/')}.py": index for index, module in enumerate(modules)}
        origins = self._entries.items()
        self._entries = dict(sorted(origins, key=lambda each: order.get(each[1].origin.file, len(order))))


def _extension_name(module: str) -> str:
    return module.rstrip("_").replace("_", "-")


@dataclass(frozen=True)
class Declaration:
    """A class that is an extension: its own name, other names of the extension, and the constants in its body."""

    class_name: str
    aliases: tuple[str, ...]
    constants: dict[str, Any]  # with those of its base classes
    own: dict[str, Any]  # without


@cache
def _classes_in(module: str) -> dict[str, ast.ClassDef]:
    """The classes of a module, parsed, not imported."""
    package, _, name = module.rpartition(".")
    (folder,) = importlib.import_module(package).__path__
    path = Path(folder) / f"{name}.py"
    if not path.is_file():
        return {}
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _registration(node: ast.ClassDef) -> tuple[str, tuple[str, ...]] | None:
    """Name and aliases of `@REGISTRY.register("name", aliases=(...))`."""
    for call in node.decorator_list:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "register":
            aliases = next((ast.literal_eval(each.value) for each in call.keywords if each.arg == "aliases"), ())
            return ast.literal_eval(call.args[0]), aliases
    return None


def _literals(node: ast.ClassDef) -> dict[str, Any]:
    constants: dict[str, Any] = {}
    for each in node.body:
        target = each.targets[0] if isinstance(each, ast.Assign) else getattr(each, "target", None)
        value = getattr(each, "value", None)
        if value is None:
            continue
        with contextlib.suppress(ValueError):
            if isinstance(target, ast.Name):
                constants[target.id] = ast.literal_eval(value)
            elif isinstance(target, ast.Tuple):
                names = [name.id for name in target.elts if isinstance(name, ast.Name)]
                constants |= zip(names, ast.literal_eval(value), strict=True)
    return constants


def _entry_points(axis: str) -> dict[str, importlib.metadata.EntryPoint]:
    """Installed plugins of one axis, by name; none is imported."""
    prefix = f"{axis}."
    return {point.name.removeprefix(prefix): point for point in all_entry_points() if point.name.startswith(prefix)}


@cache
def all_entry_points() -> tuple[importlib.metadata.EntryPoint, ...]:
    """Every installed extension, of all axes."""
    return tuple(importlib.metadata.entry_points(group=GROUP))


def distribution_name(point: importlib.metadata.EntryPoint) -> str:
    """The installed package of an extension, with its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def _distribution_of(module: str) -> str:
    """The installed package that a plugin's module belongs to, with its version; empty for a loaded file."""
    for point in all_entry_points():
        if point.dist is not None and (
            point.module == module or point.module.split(".")[0] == module.split(".", maxsplit=1)[0]
        ):
            return distribution_name(point)
    return ""
