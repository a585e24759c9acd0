"""regard train."""

from regard.tasks.base import all_tasks
from tests.cli.processes import regard


def test_the_help_of_train_lists_every_task_that_can_be_trained() -> None:
    text = regard("train", "--help").stdout
    words = text.replace(",", " ").replace(";", " ").split()
    assert {task.name for task in all_tasks() if task.presets} <= set(words)
    assert "{tasks}" not in text
