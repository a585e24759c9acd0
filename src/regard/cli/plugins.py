"""regard plugins."""

import json

import typer

from regard.cli.common import Json


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "plugins",
        epilog="\b\nExamples:\n  regard plugins\n  regard plugins --plugin my_score.py\n  regard plugins --json",
    )(plugins)


def plugins(as_json: Json = False) -> None:
    """List every kind of extension with its names, and where those come from that are not built in."""
    from regard.plugins import extensions, ignored_entry_points

    found = extensions()
    if as_json:
        records = [
            {"axis": axis, "extensions": [{"name": name, "origin": origin} for name, origin in names.items()]}
            for axis, names in found.items()
        ]
        typer.echo(json.dumps(records, indent=2, ensure_ascii=False))
        return
    for sentence in ignored_entry_points():
        typer.echo(sentence, err=True)
    for axis, names in found.items():
        builtin = [name for name, origin in names.items() if origin == "built-in"]
        typer.secho(axis, bold=True)
        typer.echo(f"  built-in: {', '.join(builtin)}")
        for name, origin in names.items():
            if origin != "built-in":
                typer.echo(f"  {name}: {origin}")
