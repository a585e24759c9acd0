"""The settings of a run from what a user names: files, languages, a configuration file."""

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
    """Files to train on and to validate with, and what is to be known about them. pairs: with both sides."""

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
        return {name: _absolute(value) for name, value in data.items() if value}


@dataclass(frozen=True)
class RunChoices:
    """What a run is to be, beside its files. folder: where the files are that the configuration file names."""

    task: str | None = None
    preset: str | None = None
    init: Sequence[Path] | None = None
    config: Path | None = None
    folder: Path = Path()
    assignments: Sequence[str] = ()


def settings_from_command(files: TrainingFiles, choices: RunChoices, limits: Mapping[str, Any]) -> RunSettings:
    """The settings of a new run. limits: steps, minutes and seed. Raises RegardError."""
    file = configuration(choices)
    given = {"data": files.as_settings(choices.task), "training": dict(limits)}
    runs = [run.absolute() for run in choices.init or ()]
    return run_settings(choices.preset, file, list(choices.assignments), given, task=choices.task, init=runs)


def detects_task(choices: RunChoices) -> bool:
    """Whether the task is told by the files alone."""
    return not (choices.task or choices.preset or configuration(choices).get("preset"))


def check_resume(files: TrainingFiles, choices: RunChoices, others: Mapping[str, Any]) -> None:
    """Raise RegardError if something is given with --resume that a run has already."""
    named = {**asdict(files), **asdict(choices), **others}
    del named["folder"]
    if any(each is not None and each not in ([], ()) for each in named.values()):
        raise RegardError(
            "--resume: a run goes on with its own settings; only --minutes and --steps can be given with it."
        )


def configuration(choices: RunChoices) -> dict[str, Any]:
    """The configuration file's settings, with absolute paths."""
    if choices.config is None:
        return {}
    content = read_toml(choices.config)
    data = content.get("data")
    if not isinstance(data, dict):
        return content
    named: dict[str, Any] = {}
    if "media" in data:
        named["media"] = str((choices.folder / str(data["media"])).absolute())
    for name in FILES:
        if name in data:
            paths = data[name] if isinstance(data[name], list) else [data[name]]
            named[name] = [str((choices.folder / str(path)).absolute()) for path in paths]
    return {**content, "data": {**data, **named}}


def _absolute(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value.absolute())
    return [str(path.absolute()) for path in value] if isinstance(value, list) else value
