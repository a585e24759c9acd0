"""Which runs a verb accepts, and its groups of decoding options, as the tasks declare them."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.inference.predictor import TaskProtocol

FOR_EVERY_TASK = ("predict", "translate")
SHOWN_BY_SEE = frozenset({"attention"})  # groups of options whose results only `regard see` shows


def option_groups(verb: str) -> Collection[str]:
    """The groups of decoding options that the tasks with this verb accept."""
    from regard.tasks.base import all_tasks

    accepted = [task.options for task in all_tasks() if verb in (*FOR_EVERY_TASK, task.verb)]
    return frozenset[str]().union(*accepted) - SHOWN_BY_SEE


def check_verb(run: Path, task: "TaskProtocol", verb: str) -> None:
    """Raise RegardError, naming the right command, for a run of another task."""
    if verb not in (*FOR_EVERY_TASK, task.verb):
        raise RegardError(f"{run}: this run is for {task.title}; use regard {task.verb}.")
