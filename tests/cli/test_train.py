"""regard train."""

from regard.tasks.base import all_tasks
from tests.cli.processes import run_regard


def test_the_help_of_train_lists_every_task_that_can_be_trained() -> None:
    text = run_regard("train", "--help").stdout
    words = text.replace(",", " ").replace(";", " ").split()
    assert {task.name for task in all_tasks() if task.presets} <= set(words)
    assert "{tasks}" not in text
