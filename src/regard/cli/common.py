"""What the subcommands share."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]
Set = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Change any setting, such as model.encoder.layers=6. May be repeated."
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, mps, or auto for the fastest there is.")]
Engine = Annotated[str, typer.Option(help="native, ctranslate2, torch, or auto for the fastest that can.")]
Precision = Annotated[str, typer.Option(help="What weights are multiplied in: int8, float32 or auto.")]
Shortlist = Annotated[bool, typer.Option("--shortlist", help="Only words of the run's shortlist; faster.")]


@contextlib.contextmanager
def progress(what: str, total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar with the time left, in a terminal; the function given tells it how many more are done."""
    if quiet or not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)
