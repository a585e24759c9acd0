"""Shared by the commands: arguments and options that several have, loading a run, a progress bar."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.data.example import Layout
    from regard.inference.predictor import Predictor

Files = list[Path]
Texts = list[str]
Run = Annotated[Path, typer.Argument(help="A trained run's folder.")]
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
Threads = Annotated[int, typer.Option(help="0 for one on each processor core.")]
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


@dataclass(frozen=True)
class RunLoader:
    """A run, and the options for loading it."""

    run: Path
    engine: str = "auto"
    device: str = "auto"
    precision: str = "auto"
    threads: int = 0
    shortlist: bool = False

    def load(self) -> "Predictor":
        """The run's predictor. Raises RegardError."""
        from regard.loading import load

        return load(
            self.run,
            engine=self.engine,
            device=self.device,
            precision=self.precision,
            threads=self.threads,
            shortlist=self.shortlist,
        )


def resolve_layout(run: Path | None, *arguments: str | None) -> "Layout":
    """The layout of a file with sources and targets: as given, or else that of the run's training files."""
    from regard.runs.table_layout import resolve_layout as resolve

    return resolve(run, *arguments)


def check_output_is_no_input(option: str, output: Path | None, inputs: Iterable[Path | None]) -> None:
    """Raise RegardError if a file would be overwritten that is read."""
    if output is not None and output.exists():
        for path in inputs:
            if path is not None and path.exists() and path.samefile(output):
                raise RegardError(f"{option}: {output} is one of the input files; name another one.")


@contextlib.contextmanager
def progress(description: str, total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar, in a terminal; the function it yields is called with the number of newly finished items."""
    if quiet or not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda count: bar.advance(task, count)
