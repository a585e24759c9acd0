"""The decoding options of a command, from the one schema in `inference/options.py`.

They are added when a command is parsed or its help is printed, so that `regard --help` imports no schema.
"""

import inspect
from collections.abc import Callable, Collection
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from regard.cli.dynamic_options import command_parameters
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.inference.options import Options

COMMANDS_DECIDE = ("nbest",)  # options with another default in some commands
META_KEY = "regard.decoding_options"  # in a context's meta
Groups = Callable[[], Collection[str]]
_GIVEN: ContextVar[dict[str, str]] = ContextVar("given parameters")


def add_decoding_command(
    app: typer.Typer, name: str, function: Callable[..., None], groups: Groups, **settings: Any
) -> None:
    """Add a command with the decoding options of some groups.

    The function gets them as `options`, in which only those given on the command line count as set. Its other
    keyword-only parameters have defaults, and are not options of the command.
    """
    base: type[TyperCommand] = settings.pop("cls", TyperCommand)
    command = type(base.__name__, (_DecodingCommand, base), {"groups": staticmethod(groups)})
    app.command(name, cls=command, **settings)(_without_keyword_only(function))


class _DecodingCommand(TyperCommand):
    groups: Groups
    _names: Collection[str] | None = None  # of decoding options, once they are added

    def get_params(self, ctx: Any) -> Any:
        if self._names is None:
            parameters = decoding_parameters(self.groups())
            self._names = frozenset(each.name for each in parameters)
            self.params = [*self.params[:-1], *parameters, *self.params[-1:]]
        return super().get_params(ctx)

    def invoke(self, ctx: Any) -> Any:
        _GIVEN.set(_given_parameters(self, ctx))
        typed = {name: ctx.params.pop(name) for name in self._names or () if name in ctx.params}
        ctx.meta[META_KEY] = options_from(typed)
        return super().invoke(ctx)


def _given_parameters(command: TyperCommand, ctx: Any) -> dict[str, str]:
    """The parameters on the command line, by name, each as it is written there."""
    given = {}
    for parameter in command.params:
        source = ctx.get_parameter_source(parameter.name)
        if parameter.name is not None and source is not None and source.name == "COMMANDLINE":
            given[parameter.name] = max(parameter.opts, key=len)
    return given


def check_applicable(names: Collection[str], reason: str) -> None:
    """Raise RegardError for a parameter on the command line that this use of the command would ignore.

    names: of the parameters that apply. reason: such as "is for texts".
    """
    for name, written in _GIVEN.get().items():
        if name not in names:
            raise RegardError(f"{written}: this {reason}; leave it out.")


def _without_keyword_only(function: Callable[..., None]) -> Callable[..., None]:
    """The function as Typer sees it: its context, and what is not keyword-only."""
    parameters = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)

    @wraps(function)
    def command(context: typer.Context, **arguments: Any) -> None:
        function(**arguments, options=context.meta[META_KEY])

    del command.__dict__["__wrapped__"]
    command.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in (context, *parameters)}
    return command


def decoding_parameters(groups: Collection[str]) -> list[Any]:
    """The command-line parameters of all options of some groups."""
    from regard.inference.options import Options, options_in

    names = [name for name in Options.model_fields if name in options_in(groups)]
    return command_parameters({name: _annotation(name) for name in names})


def options_from(typed: dict[str, Any]) -> "Options":
    """Options from those given on the command line; the others are None, and stay unset. Raises RegardError."""
    from regard.inference.options import Options

    values = {name: value for name, value in typed.items() if value is not None and value not in ([], ())}
    if (path := values.get("glossary")) is not None:
        from regard.alignment.glossary import read_glossary

        values["glossary"] = read_glossary(path)
    return Options.from_dict(values)


def _annotation(name: str) -> Any:
    """The type of an option on the command line, with its flag and help."""
    from regard.inference.options import Options

    field = Options.model_fields[name]
    text, default = str(field.description), field.default
    kind = field.annotation
    if default in ((), {}):
        kind = list[str] if default == () else Path
        text += " May be repeated." if default == () else " A file: .tsv, .csv or .jsonl."
    elif default not in (None, "", False) and name not in COMMANDS_DECIDE:
        text += f" [default: {default}]"
    flag = "--" + name.replace("_", "-")
    return Annotated[kind | None, typer.Option(flag, help=text)]  # type: ignore[operator]
