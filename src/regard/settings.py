"""The base of typed settings: read from TOML, changed by `--set a.b=c`, validated by pydantic, errors in one sentence.

Each package defines its own settings classes; this file has what they share. It imports no PyTorch.
"""

import difflib
import tomllib
from pathlib import Path
from typing import Any, Self, get_args, get_origin

import tomli_w
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError

from regard.errors import RegardError
from regard.registry import Registry, UnknownNameError
from regard.renames import migrate, new_name, new_value


class Settings(BaseModel):
    """Immutable settings; an unknown name is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)

    @classmethod
    def parse(cls, data: dict[str, Any], *, above: str = "") -> Self:
        """These settings from plain data. above: their path, for errors. Raises RegardError with one sentence."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise RegardError(_error_message(error, cls, above)) from None

    def unset_names(self) -> list[str]:
        """Names of the settings that are None."""

        def names(table: dict[str, Any], above: str) -> list[str]:
            inner = [
                names(value, f"{above}{key}.") if isinstance(value, dict) else [f"{above}{key}"]
                for key, value in table.items()
                if value is None or isinstance(value, dict)
            ]
            return [name for some in inner for name in some]

        return names(self.model_dump(), "")

    def as_toml(self) -> str:
        """The settings as a TOML file's text; what is None is left out."""
        return tomli_w.dumps(_without_none(self.model_dump(mode="json")))


def registered(registry: Registry[Any], *, without: tuple[str, ...] = (), also: tuple[str, ...] = ()) -> AfterValidator:
    """Validates that a string is the name of an extension, and not in `without`; or one of `also`. Other names
    of an extension are replaced by its own. Imports no extension."""

    def check(name: str) -> str:
        known = [*also, *(each for each in registry.names() if each not in without)]
        if name not in known and (target := registry.alias_of(name)) in known:
            return str(target)
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise UnknownNameError(registry.axis, f"there is no {name!r}; {meant}the choices are {', '.join(known)}.")
        return name

    return AfterValidator(check)


class _NestedError(ValueError):
    """Invalid settings of a component whose class is found by its kind."""

    def __init__(self, error: ValidationError, cls: type[BaseModel]) -> None:
        super().__init__(str(error))
        self.error, self.cls = error, cls


def by_kind(registry: Registry[Any], *, default: str = "") -> BeforeValidator:
    """Parses a table as the settings class that its `kind` names in a registry. default: the kind if none is given."""

    def parse(data: object) -> object:
        if not isinstance(data, dict):
            return data
        kind = data.get("kind", default)
        if not kind:
            raise RegardError(f"kind is missing; choose {', '.join(registry.names())}")
        if (renamed := new_value(f"model.{registry.axis}.kind", str(kind))) is not None:
            raise RegardError(f"kind: {kind} is now called {renamed}")
        if not isinstance(kind, str) or kind not in registry:
            raise UnknownNameError(registry.axis, registry.unknown(str(kind)).reason)
        cls: type[BaseModel] = registry.get(kind)
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise _NestedError(error, cls) from None

    return BeforeValidator(parse)


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file's content, old names of settings replaced by new ones. Raises RegardError, naming the file."""
    try:
        return migrate(tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise RegardError(f"{path}: there is no such file.") from None
    except (IsADirectoryError, PermissionError) as error:
        raise RegardError(f"{path}: it cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise RegardError(f"{path}: this is not a text file in UTF-8; settings are written in TOML.") from None
    except tomllib.TOMLDecodeError as error:
        raise RegardError(f"{path}: this is not TOML: {error}.") from None


def apply_assignments(settings: dict[str, Any], assignments: list[str]) -> dict[str, Any]:
    """A copy with each assignment "a.b.c=value". Values are parsed as TOML, and are strings if that fails."""
    result: dict[str, Any] = merge_settings(settings, {})
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        parts = name.strip().split(".")
        if not equals or not all(parts):
            raise RegardError(f"--set: {assignment!r} is not name=value, such as model.encoder.layers=6.")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        table = result
        for part in parts[:-1]:
            inner = table.setdefault(part, {})
            if not isinstance(inner, dict):
                raise RegardError(f"--set: {name} does not exist, because {part} is a single value.")
            table = inner
        table[parts[-1]] = value
    return result


def merge_settings(base: dict[str, Any], override: dict[str, Any]) -> dict[str, Any]:
    """Both, table by table; `override` wins. A table with another `kind` replaces the whole table of the base."""
    if "kind" in override and "kind" in base and override["kind"] != base["kind"]:
        base = {}
    result = {key: merge_settings(value, {}) if isinstance(value, dict) else value for key, value in base.items()}
    for key, value in override.items():
        old = result.get(key)
        result[key] = merge_settings(old if isinstance(old, dict) else {}, value) if isinstance(value, dict) else value
    return result


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value


def _error_message(error: ValidationError, cls: type[BaseModel], above: str = "") -> str:
    """The first error, with the path of the setting and a suggestion. above: the path of these settings."""
    first = error.errors()[0]
    where, owner = _locate(first["loc"], cls)
    where = f"{above}.{where}".strip(".")
    if isinstance(nested := first.get("ctx", {}).get("error"), _NestedError):
        return _error_message(nested.error, nested.cls, where)
    if first["type"] == "extra_forbidden" and owner is not None:
        if (renamed := new_name(where)) is not None:
            return f"{where}: this setting is now called {renamed}."
        known = list(owner.model_fields)
        near = difflib.get_close_matches(str(first["loc"][-1]), known, n=1, cutoff=0.6)
        meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}."
        return f"{where}: there is no such setting; {meant}"
    if first["type"] in ("union_tag_invalid", "literal_error", "enum"):
        expected = first.get("ctx", {}).get("expected_tags") or first.get("ctx", {}).get("expected")
        value = first["input"].get("kind") if isinstance(first["input"], dict) else first["input"]
        return f"{where}: there is no {value!r}; the choices are {expected}."
    if first["type"] == "union_tag_not_found":
        return f"{where}.kind: it is missing; choose a kind."
    if first["type"] == "missing":
        return f"{where}: it is missing."
    if (renamed := new_value(where, str(first["input"]))) is not None:
        return f"{where}: {first['input']} is now called {renamed}."
    if isinstance(unknown := first.get("ctx", {}).get("error"), UnknownNameError):
        return f"{where}: {unknown.reason}"
    message = first["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    rejected = "" if isinstance(first["input"], dict) else f"{first['input']!r} is not possible: "
    return f"{where}: {rejected}{message.rstrip('.')}." if where else f"{message.rstrip('.')}."


def _locate(location: tuple[int | str, ...], cls: type[BaseModel]) -> tuple[str, type[BaseModel] | None]:
    """The setting's path, without the tags that unions leave in a location, and the class that has it."""
    names: list[str] = []
    owner: type[BaseModel] | None = cls
    choices: list[type[BaseModel]] = []
    for index, part in enumerate(location):
        if choices:
            tagged = [kind for kind in choices if part in get_args(kind.model_fields["kind"].annotation)]
            choices = []
            if tagged:
                owner = tagged[0]
                continue
        names.append(str(part))
        last = index == len(location) - 1
        field = owner.model_fields.get(str(part)) if owner is not None else None
        if field is None or last:
            continue
        if not _classes(field.annotation):  # a plain value: the rest is pydantic's note on its type
            break
        choices = _classes(field.annotation)
        owner = choices[0] if len(choices) == 1 else None
        choices = choices if len(choices) > 1 else []
    return ".".join(names), owner


def _classes(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) is None:
        return []
    return [kind for arg in get_args(annotation) for kind in _classes(arg)]
