"""The axes of attention as registries: every choice is a class in one file, found by name. Imports no PyTorch.

A class states what the catalog lists as constants in its body, which are read without importing it: `formula`,
`summary`, `paper`, `use` (how it is written in Python) and `order` (its position in lists).
"""

import inspect
from difflib import get_close_matches
from typing import TypeVar

from regard.registry import Registry, UnknownNameError

T = TypeVar("T", bound=type)
DEFAULT_ORDER = 1000  # of classes without an `order`: plugins are listed after the built-in choices


class Axis(Registry[T]):
    """The choices on one axis. keyword: the argument of `attend` and `Attention` for it."""

    def __init__(self, axis: str, package: str, *, question: str, keyword: str = "") -> None:
        super().__init__(axis, package, deferred=True)
        self.question, self.keyword = question, keyword or axis

    def add(self, name: str, item: T, *, aliases: tuple[str, ...] = ()) -> None:
        """Register one choice; its class gets the name as an attribute."""
        super().add(name, item, aliases=aliases)
        item.name = name  # type: ignore[attr-defined]

    def ordered(self) -> list[str]:
        """All names, by their `order`."""
        return sorted(self.names(), key=lambda name: self.declaration(name).own.get("order", DEFAULT_ORDER))

    def canonical_name(self, name: str) -> str | None:
        """The name that a spelling or an alias stands for, such as `Scaled_Dot` for `scaled-dot`; None if unknown."""
        normalized = name.strip().lower().replace("_", "-").replace(" ", "-")
        if normalized in self.names():
            return normalized
        return self._aliases.get(normalized) or self._declared_alias(normalized)

    def find_class(self, name: str) -> T:
        """The class that a spelling or an alias stands for. Raises RegardError with the likely one if there is none."""
        known = self.canonical_name(name)
        if known is None:
            raise self.unknown(name)
        return self.get(known)

    def class_names(self) -> list[str]:
        """The names of the built-in classes, none imported."""
        return [self.declaration(name).class_name for name in self.builtin_names()]

    def spellings(self) -> list[str]:
        """Names and aliases."""
        return [spelling for name in self.ordered() for spelling in (name, *self.declaration(name).aliases)]

    def unknown(self, name: str, *, where: str = "") -> UnknownNameError:
        """The error for a name that is not registered."""
        matches = get_close_matches(name.lower(), self.spellings(), n=1)
        suggestion = f"did you mean {matches[0]!r}? " if matches else ""
        choices = ", ".join(self.ordered())
        return UnknownNameError(where or self.keyword, f"there is no {name!r}; {suggestion}the choices are {choices}.")


def required_arguments(kind: type) -> str:
    """The required arguments of a class, for messages: `query_width, radius=radius`."""
    parameters = [each for each in inspect.signature(kind).parameters.values() if each.default is each.empty]
    named = [f"{each.name}={each.name}" if each.kind is each.KEYWORD_ONLY else each.name for each in parameters]
    return ", ".join(named)
