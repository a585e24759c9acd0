"""What the subcommands share."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from regard.data.example import Layout

Files = list[Path]
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
SourceFile = Annotated[Path | None, typer.Option(help="A text file of sources, one a line.")]
SourceLanguage = Annotated[str | None, typer.Option("--from", help="For files with several languages.")]
TargetLanguage = Annotated[str | None, typer.Option("--to", help="For files with several languages.")]
SourceColumn = Annotated[
    str | None, typer.Option(help="Of a table: a name, or a number from 1; the run's own if none.")
]
TargetColumn = Annotated[str | None, typer.Option(help="The same for the target.")]
Media = Annotated[
    Path | None, typer.Option(help="The folder of the pictures or recordings that a table names, if not its own.")
]
LengthPenalty = Annotated[float, typer.Option(help="Above 0 prefers longer outputs.")]
CoveragePenalty = Annotated[float, typer.Option(help="Above 0 prefers outputs that attend to the whole source.")]


def layout_of(run: Path | None, *asked: str | None) -> "Layout":
    """Where the sides are in a file with both: as asked, or else as the run's own files had them."""
    from regard.data.example import Layout
    from regard.settings import read_toml
    from regard.training.settings import RunSettings  # which imports no PyTorch

    given: list[str | int | None] = [
        *asked[:2],
        *(int(each) if each and each.isdigit() else each for each in asked[2:]),
    ]
    own: list[str | int | None] = [None] * 4
    question = None
    if run is not None and (run / "settings.toml").exists():
        data = RunSettings.parse(read_toml(run / "settings.toml")).data
        own = [data.source_language, data.target_language, data.source_column, data.target_column]
        question = data.question_column
    names = ("source_language", "target_language", "source_column", "target_column")
    sides: dict[str, Any] = {
        name: theirs if each is None else each for name, each, theirs in zip(names, given, own, strict=True)
    }
    return Layout(**sides, question_column=question)


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
