"""Registries: named extensions of one axis, such as scores, tasks or metrics.

Built-in extensions are found by listing a package, so a new one is one new file. Extensions from outside come from
installed packages, through entry points in the group `regard.plugins` that are named by axis (`metric.comet`), or from
files loaded with `--plugin`. Nothing is ever imported because a run's folder names it.
"""

import difflib
import importlib
import importlib.metadata
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

from regard.errors import RegardError

GROUP = "regard.plugins"
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
    (`scaled_dot.py` for `scaled-dot`); otherwise all are imported on first use, and may define several extensions each.
    """

    def __init__(self, axis: str, package: str, *, deferred: bool = False) -> None:
        if axis in AXES:
            raise ValueError(f"there are two registries for {axis}")
        self.axis, self._package, self._deferred = axis, package, deferred
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
            taken = self._origin(each)
            if taken is not None and taken != origin:
                raise RegardError(
                    f"{origin.file}: there is already a {self.axis} named {each!r}, in {taken.file}; rename yours."
                )
            if each in self._entries:
                raise ValueError(f"{origin.file}: {self.axis} {each!r} is registered twice")
        self._entries[name] = _Entry(item, origin)
        self._aliases |= dict.fromkeys(aliases, name)

    # --- looking them up -------------------------------------------------------------------------------------------

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.names() or self._canonical(name) in self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> list[str]:
        """All names: built-in ones, those of loaded plugins and those of installed entry points, none imported."""
        if self._deferred:
            builtin = [_name(module) for module in self._modules()]
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

    def aliases(self, name: str) -> list[str]:
        """Other names of an extension."""
        self._find(name)
        return [alias for alias, of in self._aliases.items() if of == self._canonical(name)]

    def unknown(self, name: str, *, where: str = "") -> UnknownNameError:
        """The error for a name that is not registered."""
        known = self.names()
        near = difflib.get_close_matches(name, [*known, *self._aliases], n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
        return UnknownNameError(where or self.axis, f"there is no {self.axis} {name!r}; {hint}")

    def _find(self, name: str) -> _Entry[T]:
        found = self._entries.get(self._canonical(name))
        if found is None and self._deferred and (module := name.replace("-", "_")) in self._modules():
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
                f"plugin {self.axis}.{name} of {_distribution(point)} cannot be imported: "
                f"{type(error).__name__}: {error}"
            ) from error
        if self._canonical(name) not in self._entries:
            raise RegardError(f"plugin {self.axis}.{name} of {_distribution(point)} registers no {self.axis} {name!r}.")

    def _canonical(self, name: str) -> str:
        return self._aliases.get(name, name)

    def _origin(self, name: str) -> Origin | None:
        """Where a name is defined, without importing a plugin."""
        if (found := self._entries.get(self._canonical(name))) is not None:
            return found.origin
        if self._deferred and name.replace("-", "_") in self._modules():
            return Origin(f"{self._package.replace('.', '/')}/{name.replace('-', '_')}.py", builtin=True)
        return None

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
        return tuple(each.name for each in pkgutil.iter_modules(folder.__path__) if not each.name.startswith("_"))

    def _import_all(self) -> None:
        if self._imported:
            return
        self._imported = True
        for module in self._modules():
            importlib.import_module(f"{self._package}.{module}")


def _name(module: str) -> str:
    return module.replace("_", "-")


def _entry_points(axis: str) -> dict[str, importlib.metadata.EntryPoint]:
    """Installed plugins of one axis, by name; none is imported."""
    prefix = f"{axis}."
    return {point.name.removeprefix(prefix): point for point in _all_entry_points() if point.name.startswith(prefix)}


@cache
def _all_entry_points() -> tuple[importlib.metadata.EntryPoint, ...]:
    return tuple(importlib.metadata.entry_points(group=GROUP))


def _distribution(point: importlib.metadata.EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def _distribution_of(module: str) -> str:
    """The installed package that a plugin's module belongs to, with its version; empty for a loaded file."""
    for point in _all_entry_points():
        if point.dist is not None and (
            point.module == module or point.module.split(".")[0] == module.split(".", maxsplit=1)[0]
        ):
            return _distribution(point)
    return ""
