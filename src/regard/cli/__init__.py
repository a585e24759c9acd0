"""The `regard` command. Each subcommand imports what it needs when it runs.

PyTorch takes over a second to import, so nothing at the top of these files may import it.
"""

import errno
import io
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from regard import __version__
from regard.cli import (
    align,
    attention,
    demo,
    embed,
    evaluate,
    fill,
    generate,
    import_and_export,
    plugins,
    predict,
    see,
    serve,
    train,
)
from regard.cli.root import PLUGIN, RootGroup
from regard.errors import RegardError

app = typer.Typer(
    name="regard",
    cls=RootGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _print_version(is_set: bool) -> None:
    if is_set:
        typer.echo(f"regard {__version__}")
        raise typer.Exit


@app.callback(
    epilog="\b\nExamples:\n  regard demo\n  regard train pairs.tsv -o run\n  regard evaluate run test.tsv\n"
    '  regard translate run "A text of yours."\n'
    "  regard attention list"
)
def regard(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(PLUGIN, help="Load extensions from a Python file; also after the command. May be repeated."),
    ] = None,
) -> None:
    """Attention, and the sequence models built on it."""


for command in (
    *(train, predict, generate, fill, embed, see, align, evaluate),
    *(serve, import_and_export, demo, plugins),
):
    command.add_to(app)
app.add_typer(attention.attention, name="attention")


def main() -> None:
    """The entry point: user errors are reported in one sentence, bugs with a traceback and another exit code."""
    if "OMP_WAIT_POLICY" not in os.environ:
        # Waiting OpenMP threads sleep after some microseconds (libgomp's default is milliseconds): no
        # slower on an idle machine, three times as fast on a busy one. Read when PyTorch is imported.
        os.environ.setdefault("GOMP_SPINCOUNT", "3000")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # characters that the terminal's encoding lacks are replaced
    try:
        app()
    except BrokenPipeError:  # the reader has closed the pipe: `regard attention list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        typer.echo("regard: stopped.", err=True)
        sys.exit(130)
    except Exception as error:
        if os.environ.get("RANK", "0") != "0":  # of several processes, only the first reports errors
            sys.exit(_exit_code(error))
        if (message := _user_message(error)) is not None:
            typer.echo(f"regard: {message}", err=True)
        else:
            traceback.print_exc()
            typer.echo(f"\nregard: {_bug_message(error)}", err=True)
        sys.exit(_exit_code(error))


def _bug_message(error: Exception) -> str:
    """Whose bug an error is, and what to do."""
    from regard.plugins import failing_plugin

    if (plugin := failing_plugin(error)) is not None:
        return f"the plugin {plugin} failed; the lines above show where."
    return (
        f"this is a bug in regard {__version__}, not a mistake of yours. Please report it in the project's issue "
        f"tracker, with the lines above and the command that you ran."
    )


USER_ERROR, NOT_FINITE, BUG = 2, 1, 70  # exit codes; 70 is EX_SOFTWARE of sysexits.h


def _exit_code(error: Exception) -> int:
    if isinstance(error, FloatingPointError):
        return NOT_FINITE
    return USER_ERROR if _user_message(error) is not None else BUG


def _user_message(error: Exception) -> str | None:
    """The message for an error that the user can fix, in one sentence; None for a bug."""
    if isinstance(error, RegardError | FloatingPointError):
        return str(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        reason = (
            "a file may not become so large here"
            if error.errno == errno.EFBIG
            else "there is no space left on the disk"
        )
        return (
            f"{reason}. Nothing that was saved before is lost: free some space and run the "
            "command again; a training run continues with regard train --resume and its folder."
        )
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}." if error.filename else f"{error.strerror.lower()}."
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "allocate" in str(error)):
        return "this needs more memory than there is; make the model, the batch or the beam smaller."
    return None


if __name__ == "__main__":
    main()
