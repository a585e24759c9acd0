"""regard train, regard presets."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.common import Device, Json, Set
from regard.data.settings import FILES
from regard.errors import RegardError

Files = list[Path]
STOPPED = 128  # and the signal's number: what a shell expects of a program that was interrupted


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command(
        "train",
        epilog="\b\nExamples:\n"
        "  regard train pairs.tsv -o run\n"
        "  regard train --source train.en --target train.de --preset bahdanau -o run --minutes 30\n"
        "  regard train memory.tmx --from en --to pt-BR -o run\n"
        "  regard train captions.jsonl --media pictures -o run\n"
        "  regard train reviews.tsv --task classification -o run\n"
        "  regard train books.txt --task causal_lm -o run\n"
        "  regard train pairs.tsv -o run --set model.encoder.layers=6 --set training.seed=7\n"
        "  regard train --config recipe.toml --folder data -o run\n"
        "  regard train --resume run\n"
        "  torchrun --nproc-per-node 2 -m regard train pairs.tsv -o run",
    )(train)
    app.command(
        "presets", epilog="\b\nExamples:\n  regard presets\n  regard presets bahdanau\n  regard presets --json"
    )(presets)


def train(
    pairs: Annotated[
        Files | None,
        typer.Argument(
            help="Files with both sides: .tsv, .csv, .jsonl, .po, .tmx, .xlf, also .gz; a folder of classes; for "
            "--task causal_lm plain text."
        ),
    ] = None,
    source: Annotated[Files | None, typer.Option(help="A text file of sources, one a line. May be repeated.")] = None,
    target: Annotated[Files | None, typer.Option(help="Its targets, line by line. May be repeated.")] = None,
    alignment: Annotated[
        Files | None, typer.Option(help="Links of their words, as in 0-0 1-2, line by line: attention learns them.")
    ] = None,
    valid: Annotated[
        Files | None, typer.Option(help="Validation pairs; held out from the others if not given.")
    ] = None,
    valid_source: Annotated[Files | None, typer.Option(help="Validation sources, one a line.")] = None,
    valid_target: Annotated[Files | None, typer.Option(help="Their targets.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The run's folder; made new.")] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="translate, caption, speech, classify, summarise, answer, span, tag, language or mask; by the files "
            "if none."
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="A model by name; one that suits the task if none. regard presets lists them.")
    ] = None,
    init: Annotated[
        Files | None,
        typer.Option(help="A run whose encoder (or, of a language model, decoder) the new one begins with."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings in a TOML file.")] = None,
    folder: Annotated[Path, typer.Option(help="Where the files are that the settings name.")] = Path(),
    media: Annotated[
        Path | None, typer.Option(help="The folder of the pictures or recordings that a table names, if not its own.")
    ] = None,
    assignments: Set = [],  # noqa: B006
    source_language: Annotated[
        str | None, typer.Option("--from", help="The source's language, for TMX and JSONL.")
    ] = None,
    target_language: Annotated[str | None, typer.Option("--to", help="The target's language.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Train so long; the schedule is fitted to it.")] = None,
    steps: Annotated[int | None, typer.Option(help="Steps at most.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed gives another run; the same, the same.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with this run.")] = None,
    overwrite: Annotated[
        bool, typer.Option(help="Replace a run that is already in the folder, with all that is in it.")
    ] = False,
    device: Device = "auto",
    tensorboard: Annotated[bool, typer.Option(help="Also write for TensorBoard into the run's folder.")] = False,
    quiet: Annotated[bool, typer.Option(help="Say nothing until the end.")] = False,
    as_json: Json = False,
) -> None:
    """Train a model on your pairs, into a folder. Ctrl-C stops it safely; --resume goes on."""
    limits = {"minutes": minutes, "steps": steps, "seed": seed}
    limits = {name: value for name, value in limits.items() if value is not None}
    if resume is not None:
        given = [
            pairs,
            source,
            target,
            alignment,
            valid,
            valid_source,
            valid_target,
            output,
            task,
            preset,
            init,
            config,
            media,
            seed,
            assignments or None,
        ]
        if any(each is not None for each in given):
            raise RegardError(
                "--resume: a run goes on with its own settings; only --minutes and --steps can be given with it."
            )
        from regard.training.run import settings_of

        if overwrite:
            raise RegardError("--resume: a run goes on or is overwritten, not both.")
        _train(settings_of(resume, limits), resume, True, quiet, device, tensorboard, as_json, further=bool(limits))
        return
    if output is None:
        raise RegardError("-o: name the folder of the run, as in: regard train pairs.tsv -o run")
    from regard.settings import read_toml
    from regard.tasks.base import get_task
    from regard.training.settings import run_settings

    data: dict[str, Any] = {
        "pairs": pairs,
        "source": source,
        "target": target,
        "alignment": alignment,
        "valid_pairs": valid,
        "valid_source": valid_source,
        "valid_target": valid_target,
        "source_language": source_language,
        "target_language": target_language,
        "media": media,
    }
    if task is not None and get_task(task).data().documents:
        data |= {"text": pairs, "valid_text": valid, "pairs": None, "valid_pairs": None}
    said = {name: _absolute(value) for name, value in data.items() if value}
    file = read_toml(config) if config is not None else {}
    given_settings = {"data": said, "training": limits}
    runs = [run.absolute() for run in init or ()]
    settings = run_settings(preset, _found_in(file, folder), assignments, given_settings, task=task, init=runs)
    from regard.data.dataset import fingerprint
    from regard.training.run import begin, restarted

    fingerprint(settings.data, settings.model.source)  # before a folder is made: all files are there
    if not restarted():
        begin(settings, output, overwrite=overwrite)
    if not (task or preset or file.get("preset") or quiet or as_json):
        typer.echo(f"Task: {settings.task}, detected from the files; choose another with --task.", err=True)
    _train(settings, output, False, quiet, device, tensorboard, as_json)


def _train(
    settings: Any,
    run: Path,
    resume: bool,
    quiet: bool,
    device: str,
    tensorboard: bool,
    as_json: bool,
    further: bool = False,
) -> None:
    from regard.training.distributed import leads
    from regard.training.run import train as start

    trained = start(settings, run, resume=resume, further=further, quiet=quiet, device=device, tensorboard=tensorboard)
    if not leads():
        return
    if as_json:
        typer.echo(json.dumps(trained.as_dict(), ensure_ascii=False))
    elif trained.where.done:
        from regard.tasks.base import get_task

        test = get_task(settings.task).test_file
        typer.echo(f"{run}: trained. Judge it with: regard evaluate {run} {test}")
    if not trained.where.done:
        # Somebody asked it to stop: what comes after must not take it for finished.
        raise typer.Exit(STOPPED + trained.stopped_by)


def _absolute(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value.absolute())
    return [str(path.absolute()) for path in value] if isinstance(value, list) else value


def _found_in(file: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The settings with their files' names made absolute, so that a run can be resumed from anywhere."""
    data = file.get("data")
    if not isinstance(data, dict):
        return file
    named: dict[str, Any] = {}
    if "media" in data:
        named["media"] = str((folder / str(data["media"])).absolute())
    for name in FILES:
        if name in data:
            paths = data[name] if isinstance(data[name], list) else [data[name]]
            named[name] = [str((folder / str(path)).absolute()) for path in paths]
    return {**file, "data": {**data, **named}}


def presets(
    name: Annotated[str | None, typer.Argument(help="One of them, with all its settings.")] = None,
    as_json: Json = False,
) -> None:
    """List the models that have a name.

    Parameters are counted with 4,000 subwords.
    """
    from regard.models.parameter_count import count_parameters
    from regard.models.presets import PRESETS
    from regard.models.presets import preset as settings_named
    from regard.training.settings import RunSettings

    if name is not None:
        settings = RunSettings.parse({**settings_named(name), "preset": name})
        if as_json:
            typer.echo(settings.model_dump_json(indent=2))
        else:
            typer.echo(
                f"# {PRESETS[name][0]}; {count_parameters(settings.model, 4000):,} parameters with 4,000 subwords"
            )
            typer.echo(settings.as_toml())
            typer.echo(f"# not set: {', '.join(settings.not_set())}")
        return
    sizes = {each: count_parameters(RunSettings.parse(PRESETS[each][1]).model, 4000) for each in PRESETS}
    if as_json:
        records = [{"name": each, "about": about, "parameters": sizes[each]} for each, (about, _) in PRESETS.items()]
        typer.echo(json.dumps(records, indent=2))
        return
    longest = max(map(len, PRESETS))
    typer.echo(f"{'preset':{longest}}   parameters  what it is")
    for each, (about, _) in PRESETS.items():
        typer.echo(f"{each:{longest}}  {sizes[each]:>11,}  {about}")
