"""Options that are added to a command when it is parsed or its help is printed, from descriptions found by then."""

import inspect
from collections.abc import Mapping
from typing import Any

import typer


def command_parameters(annotations: Mapping[str, Any]) -> list[Any]:
    """The parameters of a command whose options have these names and annotated types; each is None if not given."""
    fields = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in annotations.items()
    ]

    def only_options(**arguments: Any) -> None: ...

    only_options.__signature__ = inspect.Signature(fields)  # type: ignore[attr-defined]
    only_options.__annotations__ = dict(annotations)
    app = typer.Typer(add_completion=False)
    app.command()(only_options)
    return list(typer.main.get_command(app).params)
