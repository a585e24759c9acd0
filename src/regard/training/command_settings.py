"""The settings of a run from command-line options: files, languages, a configuration file."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.data.settings import FILES
from regard.errors import RegardError
from regard.settings import read_toml
from regard.tasks.base import get_task
from regard.training.settings import RunSettings, run_settings


@dataclass(frozen=True)
class TrainingFiles:
    """Files for training and validation, with their languages. pairs: files with source and target."""

    pairs: Sequence[Path] | None = None
    source: Sequence[Path] | None = None
    target: Sequence[Path] | None = None
    alignment: Sequence[Path] | None = None
    valid_pairs: Sequence[Path] | None = None
    valid_source: Sequence[Path] | None = None
    valid_target: Sequence[Path] | None = None
    media: Path | None = None
    source_language: str | None = None
    target_language: str | None = None

    def as_settings(self, task: str | None) -> dict[str, Any]:
        """The settings of `data`, with absolute paths, so that a run can be resumed from anywhere."""
        data = asdict(self)
        if task is not None and get_task(task).data().documents:
            data |= {"text": self.pairs, "valid_text": self.valid_pairs, "pairs": None, "valid_pairs": None}
        return {name: _absolute_paths(value) for name, value in data.items() if value}


@dataclass(frozen=True)
class RunOptions:
    """The options of a new run other than its files. folder: that of the files named in the configuration file."""

    task: str | None = None
    preset: str | None = None
    init: Sequence[Path] | None = None
    config: Path | None = None
    folder: Path = Path()
    assignments: Sequence[str] = ()


def settings_from_command(files: TrainingFiles, options: RunOptions, limits: Mapping[str, Any]) -> RunSettings:
    """The settings of a new run. limits: steps, minutes and seed. Raises RegardError."""
    file = read_configuration(options)
    settings = {"data": files.as_settings(options.task or file.get("task")), "training": dict(limits)}
    runs = [run.absolute() for run in options.init or ()]
    return run_settings(options.preset, file, list(options.assignments), settings, task=options.task, init=runs)


def is_task_detected(options: RunOptions) -> bool:
    """Whether the task is detected from the files alone."""
    return not (options.task or options.preset or read_configuration(options).get("preset"))


def check_resume(files: TrainingFiles, options: RunOptions, other_options: Mapping[str, Any]) -> None:
    """Raise RegardError if an option is given with --resume that does not apply to an existing run."""
    all_options = {**asdict(files), **asdict(options), **other_options}
    del all_options["folder"]
    if any(each is not None and each not in ([], ()) for each in all_options.values()):
        raise RegardError(
            "--resume: a run goes on with its own settings; only --minutes and --steps can be given with it."
        )


def read_configuration(options: RunOptions) -> dict[str, Any]:
    """The settings of the configuration file, with absolute paths."""
    if options.config is None:
        return {}
    content = read_toml(options.config)
    data = content.get("data")
    if not isinstance(data, dict):
        return content
    absolute: dict[str, Any] = {}
    if "media" in data:
        absolute["media"] = str((options.folder / str(data["media"])).absolute())
    for name in FILES:
        if name in data:
            paths = data[name] if isinstance(data[name], list) else [data[name]]
            absolute[name] = [str((options.folder / str(path)).absolute()) for path in paths]
    return {**content, "data": {**data, **absolute}}


def _absolute_paths(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value.absolute())
    return [str(path.absolute()) for path in value] if isinstance(value, list) else value
