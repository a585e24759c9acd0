"""The group of all commands: adds the verbs of tasks, loads plugins first, reports the new names of renamed options."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from regard.errors import RegardError
from regard.renames import OPTIONS

if TYPE_CHECKING:
    from regard.tasks.base import Task

PLUGIN = "--plugin"


class RootGroup(TyperGroup):
    """Built-in commands, and one for every verb of a task, those of plugins included."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args, files = split_plugins(args)
        if files:
            from regard.plugins import load_file

            for file in files:
                load_file(Path(file))
            self._check_verbs()
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        builtin = super().list_commands(ctx)
        self._add_verbs()
        verbs = [name for name in super().list_commands(ctx) if name not in builtin]
        after = builtin.index("predict") + 1
        return [*builtin[:after], *verbs, *builtin[after:]]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            self._add_verbs()
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            option = getattr(error, "option_name", None)  # set by click for an unknown option
            known = {name for each in getattr(error, "ctx", ctx).command.params for name in each.opts}
            if option in OPTIONS and OPTIONS[option].split()[0] in known:
                raise RegardError(f"{option}: this option is now called {OPTIONS[option]}.") from None
            raise

    def _check_verbs(self) -> None:
        """Raise RegardError if the verb of a task in a plugin is a command that is no task's verb."""
        from regard.tasks.base import TASKS

        builtin = {TASKS.get(name).verb for name in TASKS.builtin_names()}
        for task in _tasks():
            if task.verb in self.commands and task.verb not in builtin:
                raise RegardError(f"task {task.name}: its verb {task.verb!r} is another command; choose another verb.")

    def _add_verbs(self) -> None:
        from regard.cli.predict import add_verb

        verbs: dict[str, list[Task]] = {}
        for task in _tasks():
            verbs.setdefault(task.verb, []).append(task)
        new = typer.Typer(rich_markup_mode=None, context_settings=dict(self.context_settings))
        names = [verb for verb in verbs if verb not in self.commands]
        for verb in names:
            add_verb(new, verb, verbs[verb])
        new.callback()(_empty_callback)  # so that Typer builds a group even for one command
        if names:
            self.commands |= typer.main.get_command(new).commands  # type: ignore[attr-defined]


def _empty_callback() -> None: ...


def _tasks() -> "list[Task]":
    """Every task. One of an installed plugin that cannot be imported is reported, and left out."""
    from regard.tasks.base import TASKS

    tasks = []
    for name in TASKS:
        try:
            tasks.append(TASKS.get(name)())
        except RegardError as error:
            typer.echo(f"regard: {error}", err=True)
    return tasks


def split_plugins(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments without `--plugin FILE`, wherever it is, and the files."""
    rest: list[str] = []
    files: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        name, equals, value = argument.partition("=")
        if argument == "--":
            rest += [argument, *remaining]
        elif name != PLUGIN:
            rest.append(argument)
        elif (file := value if equals else next(remaining, None)) is None:
            raise RegardError(f"{PLUGIN}: name a Python file.")
        else:
            files.append(file)
    return rest, files
