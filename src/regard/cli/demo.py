"""regard demo: a task on data made by code, from nothing to a model that can be looked at."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.common import Device, Json, Set
from regard.errors import RegardError


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "demo",
        epilog="\b\nExamples:\n"
        "  regard demo\n"
        "  regard demo --preset transformer-tiny -o demo-transformer\n"
        "  regard demo --task caption\n"
        "  regard demo --task speech --preset speech-transformer",
    )(demo)


def demo(
    task: Annotated[str, typer.Option(help="translate (dates), caption, speech, summarise or answer.")] = "translate",
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
    """Learn a task on data made by code (to read dates, if none is named), and show what the model looks at."""
    from regard.training.demonstrations import DEMONSTRATIONS, MARK
    from regard.training.settings import run_settings

    if task not in DEMONSTRATIONS:
        raise RegardError(f"--task: there is no demonstration of {task!r}; there are {', '.join(DEMONSTRATIONS)}.")
    shown = DEMONSTRATIONS[task]
    preset = preset or shown.preset
    limits = {"training": {"steps": steps or shown.steps, "seed": seed}}
    settings = run_settings(preset, shown.settings(preset, output), assignments, limits)
    if output.exists() and (output / MARK).exists():
        shutil.rmtree(output)
    if (output / "settings.toml").exists():
        raise RegardError(f"-o: {output} is a run of your own; choose another folder for the demonstration.")
    from regard.training.run import begin, train

    begin(settings, output)
    shown.write(output, seed)
    (output / MARK).write_text(f"{task}\n")
    trained = train(settings, output, quiet=as_json, device=device)
    from regard.inference.loading import in_torch

    translator = in_torch(trained.bundle)
    tested = shown.judge(translator, output)
    drawn = shown.draw(translator, output, seed)
    result = {
        "task": task,
        "exact": tested.exact,
        "test_examples": tested.examples,
        "preset": preset,
        "run": str(output),
        "seconds": round(trained.where.seconds, 1),
    }
    if as_json:
        examples = [{k: v for k, v in each.items() if k != "drawing"} for each in drawn]
        typer.echo(json.dumps({**result, "examples": examples}, ensure_ascii=False))
        return
    for each in drawn:
        typer.echo(f"\n{each['source']}  →  {each['text']}")
        typer.echo(each["drawing"])
    done = f"{tested.exact:.1f} % of {shown.sentence(tested.examples)}"
    typer.echo(f"\n{done}, after {result['seconds']:.0f} seconds of training.")
    typer.echo(f"{output}/attention.png shows the same as a picture, {output}/curves.png how it learnt.")
    # With no environment active, as after `make demo`, the command is where it was called from.
    called = "python -m regard" if sys.argv[0].endswith("__main__.py") else os.path.relpath(sys.argv[0])
    command = "regard" if shutil.which("regard") else called
    typer.echo(f"Now your own: {command} {shown.next}")
