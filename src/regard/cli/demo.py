"""regard demo: a task on synthetic data, from nothing to a model with a plot of its attention."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.common import Device, Json, Set


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "demo",
        epilog="\b\nExamples:\n"
        "  regard demo\n"
        "  regard demo --preset transformer-tiny -o demo-transformer\n"
        "  regard demo --task captioning\n"
        "  regard demo --task forecasting\n"
        "  regard demo --task speech --preset speech-transformer",
    )(demo)


def demo(
    task: Annotated[
        str, typer.Option(help="translation (of dates), captioning, speech, summarization, story_qa or forecasting.")
    ] = "translation",
    preset: Annotated[
        str | None,
        typer.Option(help="Any preset that fits the task, its usual one if none; regard presets lists them."),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The folder of the run; an earlier demo there is removed.")
    ] = Path("demo"),
    steps: Annotated[int | None, typer.Option(help="Steps of training; as many as the task needs if none.")] = None,
    assignments: Set = [],  # noqa: B006
    seed: Annotated[int, typer.Option(help="Another seed, other data and other weights.")] = 1,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Train a model on synthetic data (dates, if no task is named) and show its attention."""
    from regard.training.demo import run_demo

    result = run_demo(
        task,
        output,
        preset=preset,
        steps=steps,
        seed=seed,
        assignments=assignments,
        device=device,
        quiet=as_json,
    )
    if as_json:
        examples = [{k: v for k, v in each.items() if k != "drawing"} for each in result.examples]
        record = {name: getattr(result, name) for name in ("task", "test_examples", "preset", "seconds")}
        record |= {**result.scores, "run": str(output), "examples": examples}
        typer.echo(json.dumps(record, ensure_ascii=False))
        return
    for each in result.examples:
        typer.echo(f"\n{each['source']}  →  {each['text']}")
        typer.echo(each["drawing"])
    typer.echo(f"\n{result.success}, after {result.seconds:.0f} seconds of training.")
    (first, what), *others = result.files.items()
    typer.echo(f"{', '.join([f'{first} shows {what}', *(f'{path} {what}' for path, what in others)])}.")
    # With no environment active, as after `make demo`, the command is where it was called from.
    called = "python -m regard" if sys.argv[0].endswith("__main__.py") else os.path.relpath(sys.argv[0])
    command = "regard" if shutil.which("regard") else called
    typer.echo(f"Now your own: {command} {result.next_command}")
