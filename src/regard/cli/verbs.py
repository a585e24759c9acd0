"""Which runs a verb takes, and which decoding options it has, as the tasks say."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.inference.predictor import PredictorTask

FOR_EVERY_TASK = ("predict", "translate")
NO_OUTPUT_FORM = frozenset({"attention"})  # groups of options whose results only `regard see` shows


def groups_of(verb: str) -> Collection[str]:
    """The groups of decoding options that the tasks with this verb accept."""
    from regard.tasks.base import all_tasks

    accepted = [task.options for task in all_tasks() if verb in (*FOR_EVERY_TASK, task.verb)]
    return frozenset[str]().union(*accepted) - NO_OUTPUT_FORM


def check_verb(run: Path, task: "PredictorTask", verb: str) -> None:
    """Raise RegardError, naming the right command, for a run of another task."""
    if verb not in (*FOR_EVERY_TASK, task.verb):
        raise RegardError(f"{run}: this run is for {task.title}; use regard {task.verb}.")
