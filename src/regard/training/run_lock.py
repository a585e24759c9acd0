"""One process trains a run at a time."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from regard.errors import RegardError


@contextlib.contextmanager
def only_here(run: Path) -> Iterator[None]:
    """Within this context nobody else can train in this folder. Raises RegardError if somebody does.

    The system lets go of the lock when the process ends, however it ends. On Windows nobody watches.
    """
    with (run / ".lock").open("a") as file:
        if sys.platform != "win32":
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RegardError(
                    f"{run}: another process is training in it; wait until it ends, or stop it."
                ) from None
        yield
