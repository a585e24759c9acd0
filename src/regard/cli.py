"""The `regard` command. Nothing here but the doors: each subcommand imports what it needs when it runs.

PyTorch takes over a second to import, so nothing at the top of this file may import it.
"""

import io
import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard import __version__

app = typer.Typer(
    name="regard",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
attention = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The family of attention mechanisms.")
app.add_typer(attention, name="attention")

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"regard {__version__}")
        raise typer.Exit


@app.callback(
    epilog="\b\nExamples:\n  regard attention list\n  regard attention show additive\n  regard attention gallery"
)
def regard(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Attention, and the sequence models built on it."""


@attention.command("list", epilog="\b\nExamples:\n  regard attention list\n  regard attention list --axis score --json")
def list_family(
    axis: Annotated[
        str | None, typer.Option(help="Only this axis: score, extent, normalise, position or image.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Every axis and every choice on it, one line each, with its paper."""
    from regard.attention import catalogue

    if axis is not None and axis not in catalogue.AXES:
        raise ValueError(f"--axis: there is no {axis!r}; the axes are {', '.join(catalogue.AXES)}.")
    axes = [axis] if axis else list(catalogue.AXES)
    entries = [entry for entry in catalogue.ENTRIES if entry.axis in axes]
    if as_json:
        typer.echo(json.dumps([_as_dict(entry) for entry in entries], indent=2, ensure_ascii=False))
        return
    name_width = max(len(entry.name) for entry in entries)
    summary_width = max(len(entry.summary) for entry in entries)
    for each in axes:
        typer.secho(f"{each}: {catalogue.AXES[each]}", bold=True)
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
    from regard.attention import catalogue

    entry = catalogue.find(name)
    if as_json:
        typer.echo(json.dumps(_as_dict(entry), indent=2, ensure_ascii=False))
        return
    typer.secho(f"{entry.name}  ({entry.axis}: {catalogue.AXES[entry.axis]})", bold=True)
    lines = [("", entry.summary), ("formula", entry.formula), ("paper", entry.paper)]
    lines += [("also", ", ".join(entry.aliases))] if entry.aliases else []
    lines += [("use", entry.use)]
    lines += [("kernel", f"{kernel}: {catalogue.KERNELS[kernel]}") for kernel in entry.kernels]
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
        raise ValueError(f"--output: {output} must end in .html or .png.")
    if output.is_dir() or not output.parent.is_dir():
        raise ValueError(f"--output: {output} cannot be written; name a file in a folder that exists.")
    from regard.seeing.gallery import as_dict, panels
    from regard.seeing.heatmaps import write_html, write_png

    drawn = panels()
    (write_html if output.suffix.lower() == ".html" else write_png)(drawn, output)
    if as_json:
        typer.echo(
            json.dumps({"output": str(output), "panels": [as_dict(panel) for panel in drawn]}, ensure_ascii=False)
        )
    else:
        typer.echo(f"{output}: {len(drawn)} pictures of the same sentence. Open it and compare.")


def _as_dict(entry: object) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(entry)  # type: ignore[call-overload, no-any-return]


def main() -> None:
    """The entry point: a user's mistake ends in one sentence, not in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no √ still gets an answer
    try:
        app()
    except BrokenPipeError:  # `regard attention list | head -1`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (ValueError, OSError) as error:
        typer.echo(f"regard: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("regard: stopped.", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
