"""regard train, regard presets."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from regard.cli.common import Device, Files, Json, Media, Set
from regard.cli.dynamic_options import command_parameters
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.training.command_settings import RunOptions, TrainingFiles
    from regard.training.settings import RunSettings

PRESET_VOCABULARY_SIZE = 4000  # subwords, for counting the parameters of presets
SIGNAL_EXIT_CODE = 128  # plus the signal's number: the convention of shells for a program that a signal ended


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command(
        "train",
        cls=TrainCommand,
        epilog="\b\nExamples:\n"
        "  regard train pairs.tsv -o run\n"
        "  regard train --source train.en --target train.de --preset bahdanau -o run --minutes 30\n"
        "  regard train memory.tmx --from en --to pt-BR -o run\n"
        "  regard train captions.jsonl --media pictures -o run\n"
        "  regard train reviews.tsv --task classification -o run\n"
        "  regard train books.txt --task causal_lm -o run\n"
        "  regard train pairs.tsv -o run --set model.encoder.layers=6 --set training.seed=7\n"
        "  regard train --config recipe.toml --data-folder data -o run\n"
        "  regard train --resume run\n"
        "  torchrun --nproc-per-node 2 -m regard train pairs.tsv -o run",
    )(train)
    app.command(
        "presets", epilog="\b\nExamples:\n  regard presets\n  regard presets bahdanau\n  regard presets --json"
    )(presets)


Pairs = Annotated[
    Files | None,
    typer.Argument(
        help="Files with source and target: .tsv, .csv, .jsonl, .po, .tmx, .xlf, also .gz; a folder of classes; plain "
        "text for a language model."
    ),
]
Source = Annotated[Files | None, typer.Option(help="A text file of sources, one a line. May be repeated.")]
Target = Annotated[Files | None, typer.Option(help="Its targets, line by line. May be repeated.")]
Alignment = Annotated[
    Files | None, typer.Option(help="Links of their words, as in 0-0 1-2, line by line: attention learns them.")
]
Valid = Annotated[Files | None, typer.Option(help="Validation pairs; held out from the others if not given.")]
ValidSource = Annotated[Files | None, typer.Option(help="Validation sources, one a line.")]
ValidTarget = Annotated[Files | None, typer.Option(help="Their targets.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="The run's folder; made new.")]
TaskName = Annotated[str | None, typer.Option(help="{tasks}; by the files if none.")]
Preset = Annotated[
    str | None, typer.Option(help="A model by name; one that suits the task if none. regard presets lists them.")
]
Init = Annotated[
    Files | None,
    typer.Option(help="A run whose encoder (or, of a language model, decoder) initializes the new one."),
]
Config = Annotated[Path | None, typer.Option(help="Settings in a TOML file.")]
DataFolder = Annotated[Path, typer.Option("--data-folder", help="Where the files are that the settings name.")]
From = Annotated[str | None, typer.Option("--from", help="The source's language, for TMX and JSONL.")]
To = Annotated[str | None, typer.Option("--to", help="The target's language.")]
Minutes = Annotated[float | None, typer.Option(help="Train so long; the schedule is fitted to it.")]
Steps = Annotated[int | None, typer.Option(help="Steps at most.")]
Seed = Annotated[int | None, typer.Option(help="Another seed gives another run; the same, the same.")]
Resume = Annotated[Path | None, typer.Option(help="Go on with this run.")]
Overwrite = Annotated[bool, typer.Option(help="Replace a run that is already in the folder, with all that is in it.")]
TensorBoard = Annotated[bool, typer.Option(help="Also write for TensorBoard into the run's folder.")]
Quiet = Annotated[bool, typer.Option(help="Print nothing until the end.")]


class TrainCommand(TyperCommand):
    """Has the options of all tasks, those of plugins included, and lists the tasks in its help; imports them only
    when it is parsed or its help is printed."""

    _settings: dict[str, str] | None = None  # of each option of a task, once they are added

    def get_params(self, ctx: Any) -> Any:
        if self._settings is None:
            from regard.tasks.base import all_tasks

            options = {name: each for task in all_tasks() for name, each in task.train_options.items()}
            self._settings = {name: each.setting for name, each in options.items()}
            added = command_parameters(
                {
                    name: Annotated[
                        (list[each.kind] if each.many else each.kind) | None,  # type: ignore[name-defined]
                        typer.Option(f"--{name}", help=each.help),
                    ]
                    for name, each in options.items()
                }
            )
            self.params = [*self.params[:-1], *added, *self.params[-1:]]
        return super().get_params(ctx)

    def get_help(self, ctx: Any) -> str:
        from regard.tasks.base import all_tasks

        names = [task.name for task in all_tasks() if task.default_presets]
        for option in self.params:
            if "{tasks}" in (text := getattr(option, "help", None) or ""):
                listed = f"{', '.join(names[:-1])} or {names[-1]}"
                option.help = text.replace("{tasks}", listed)  # type: ignore[attr-defined]
        return super().get_help(ctx)

    def invoke(self, ctx: Any) -> Any:
        for name, setting in (self._settings or {}).items():
            value = ctx.params.pop(name, None)
            if value is not None and value not in ((), []):
                text = json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
                ctx.params["assignments"] = [*(ctx.params.get("assignments") or ()), f"{setting}={text}"]
        return super().invoke(ctx)


@dataclass(frozen=True)
class _ExecutionOptions:
    """The device that training runs on, and what is reported."""

    device: str
    tensorboard: bool
    quiet: bool
    as_json: bool


def train(
    pairs: Pairs = None,
    source: Source = None,
    target: Target = None,
    alignment: Alignment = None,
    valid: Valid = None,
    valid_source: ValidSource = None,
    valid_target: ValidTarget = None,
    output: Output = None,
    task: TaskName = None,
    preset: Preset = None,
    init: Init = None,
    config: Config = None,
    folder: DataFolder = Path(),
    media: Media = None,
    assignments: Set = [],  # noqa: B006
    source_language: From = None,
    target_language: To = None,
    minutes: Minutes = None,
    steps: Steps = None,
    seed: Seed = None,
    resume: Resume = None,
    overwrite: Overwrite = False,
    device: Device = "auto",
    tensorboard: TensorBoard = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a model on your pairs, into a folder. Ctrl-C stops it safely; --resume goes on."""
    from regard.training.command_settings import RunOptions, TrainingFiles, check_resume

    files = TrainingFiles(
        *(pairs, source, target, alignment, valid, valid_source, valid_target),
        *(media, source_language, target_language),
    )
    options = RunOptions(task, preset, init, config, folder, tuple(assignments))
    limits = {"minutes": minutes, "steps": steps, "seed": seed}
    limits = {name: value for name, value in limits.items() if value is not None}
    execution = _ExecutionOptions(device, tensorboard, quiet, as_json)
    if resume is not None:
        check_resume(files, options, {"output": output, "seed": seed})
        if overwrite:
            raise RegardError("--resume: a run goes on or is overwritten, not both.")
        _resume(resume, limits, execution)
    elif output is None:
        raise RegardError("-o: name the folder of the run, as in: regard train pairs.tsv -o run")
    else:
        _start_run(files, options, limits, output, overwrite, execution)


def _resume(run: Path, limits: dict[str, Any], execution: _ExecutionOptions) -> None:
    from regard.training.run import read_run_settings

    _train(read_run_settings(run, limits), run, execution, resume=True, extend=bool(limits))


def _start_run(
    files: "TrainingFiles",
    options: "RunOptions",
    limits: dict[str, Any],
    output: Path,
    overwrite: bool,
    execution: _ExecutionOptions,
) -> None:
    from regard.data.corpus import fingerprint
    from regard.training.command_settings import is_task_detected, settings_from_command
    from regard.training.run import create_run, is_restart_or_worker

    settings = settings_from_command(files, options, limits)
    fingerprint(settings.data, settings.model.source)  # raises for a missing file before the folder is created
    if not is_restart_or_worker():
        create_run(settings, output, overwrite=overwrite)
    if is_task_detected(options) and not (execution.quiet or execution.as_json):
        typer.echo(f"Task: {settings.task}, detected from the files; choose another with --task.", err=True)
    _train(settings, output, execution)


def _train(
    settings: "RunSettings", run: Path, execution: _ExecutionOptions, *, resume: bool = False, extend: bool = False
) -> None:
    from regard.training.distributed import is_main_process
    from regard.training.run import train as start

    trained = start(
        settings,
        run,
        resume=resume,
        extend=extend,
        quiet=execution.quiet,
        device=execution.device,
        tensorboard=execution.tensorboard,
    )
    if not is_main_process():
        return
    if execution.as_json:
        typer.echo(json.dumps(trained.as_dict(), ensure_ascii=False))
    elif trained.state.done:
        from regard.tasks.base import get_task

        test = get_task(settings.task).test_file
        typer.echo(f"{run}: trained. Evaluate it with: regard evaluate {run} {test}")
    if not trained.state.done:
        # Interrupted: the next command of a script must not run.
        raise typer.Exit(SIGNAL_EXIT_CODE + trained.stopped_by)


def presets(
    name: Annotated[str | None, typer.Argument(help="One of them, with all its settings.")] = None,
    as_json: Json = False,
) -> None:
    """List the models that have a name.

    Parameters are counted with 4,000 subwords.
    """
    from regard.models.parameter_count import count_parameters
    from regard.tasks.presets import all_presets
    from regard.training.settings import RunSettings

    if name is not None:
        _print_preset(name, as_json)
        return
    found = all_presets()
    sizes = {
        each: count_parameters(RunSettings.parse(preset.settings()).model, PRESET_VOCABULARY_SIZE)
        for each, preset in found.items()
    }
    if as_json:
        records = [
            {"name": each, "about": preset.help_text(), "parameters": sizes[each]} for each, preset in found.items()
        ]
        typer.echo(json.dumps(records, indent=2))
        return
    width = max(map(len, found))
    typer.echo(f"{'preset':{width}}   parameters  what it is")
    for each, preset in found.items():
        typer.echo(f"{each:{width}}  {sizes[each]:>11,}  {preset.help_text()}")


def _print_preset(name: str, as_json: bool) -> None:
    from regard.models.parameter_count import count_parameters
    from regard.tasks.presets import all_presets, preset_settings
    from regard.training.settings import RunSettings

    settings = RunSettings.parse({**preset_settings(name), "preset": name})
    if as_json:
        typer.echo(settings.model_dump_json(indent=2))
        return
    parameters = count_parameters(settings.model, PRESET_VOCABULARY_SIZE)
    typer.echo(
        f"# {all_presets()[name].help_text()}; {parameters:,} parameters with {PRESET_VOCABULARY_SIZE:,} subwords"
    )
    typer.echo(settings.as_toml())
    typer.echo(f"# not set: {', '.join(settings.unset_names())}")
