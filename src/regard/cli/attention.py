"""regard attention: the family of mechanisms, listed, explained and drawn."""

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.common import Json
from regard.errors import RegardError

attention = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The family of attention mechanisms.")


@attention.command("list", epilog="\b\nExamples:\n  regard attention list\n  regard attention list --axis score --json")
def list_family(
    axis: Annotated[
        str | None, typer.Option(help="Only this axis: score, extent, normalizer, position or image.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Every axis and every choice on it, one line each, with its paper."""
    from regard.attention import catalog

    if axis is not None and axis not in catalog.AXES:
        raise RegardError(f"--axis: there is no {axis!r}; the axes are {', '.join(catalog.AXES)}.")
    axes = [axis] if axis else list(catalog.AXES)
    entries = catalog.entries(axis)
    if as_json:
        typer.echo(json.dumps([_as_dict(entry) for entry in entries], indent=2, ensure_ascii=False))
        return
    name_width = max(len(entry.name) for entry in entries)
    summary_width = max(len(entry.summary) for entry in entries)
    for each in axes:
        typer.secho(f"{each}: {catalog.AXES[each].question}", bold=True)
        for entry in entries:
            if entry.axis == each:
                typer.echo(f"  {entry.name:{name_width}}  {entry.summary:{summary_width}}  {entry.paper}")
        typer.echo()
    if axis is None:
        typer.echo("Any function of queries and keys is a score too. More on one: regard attention show additive")


@attention.command(
    "show", epilog="\b\nExamples:\n  regard attention show additive\n  regard attention show local-p --json"
)
def show_one(
    name: Annotated[str, typer.Argument(help="A mechanism, such as additive, local-p or entmax.")],
    as_json: Json = False,
) -> None:
    """One mechanism: its formula, its paper, and which kernels serve it."""
    from regard.attention import catalog

    entry = catalog.find(name)
    if as_json:
        typer.echo(json.dumps(_as_dict(entry), indent=2, ensure_ascii=False))
        return
    typer.secho(f"{entry.name}  ({entry.axis}: {catalog.AXES[entry.axis].question})", bold=True)
    lines = [("", entry.summary), ("formula", entry.formula), ("paper", entry.paper)]
    lines += [("also", ", ".join(entry.aliases))] if entry.aliases else []
    lines += [("use", entry.use)]
    lines += [("kernel", f"{kernel}: {catalog.KERNELS[kernel]}") for kernel in entry.kernels]
    for label, text in lines:
        typer.echo(f"  {label:8} {text}" if label else f"  {text}")


@attention.command(
    "gallery", epilog="\b\nExamples:\n  regard attention gallery\n  regard attention gallery -o gallery.png"
)
def gallery(
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to: .html or .png.")] = Path("gallery.html"),
    as_json: Json = False,
) -> None:
    """One small sentence through every mechanism, the weights drawn side by side."""
    if output.suffix.lower() not in (".html", ".png"):
        raise RegardError(f"--output: {output} must end in .html or .png.")
    if output.is_dir() or not output.parent.is_dir():
        raise RegardError(f"--output: {output} cannot be written; name a file in a folder that exists.")
    from regard.views.gallery import gallery_panels, to_dict
    from regard.views.gallery_files import write_html, write_png

    panels = gallery_panels()
    (write_html if output.suffix.lower() == ".html" else write_png)(panels, output)
    if as_json:
        typer.echo(
            json.dumps({"output": str(output), "panels": [to_dict(panel) for panel in panels]}, ensure_ascii=False)
        )
    else:
        typer.echo(f"{output}: {len(panels)} pictures of the same sentence. Open it and compare.")


def _as_dict(entry: object) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(entry)  # type: ignore[call-overload, no-any-return]
