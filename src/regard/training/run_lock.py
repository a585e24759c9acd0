"""A lock that lets only one process train a run at a time."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from regard.errors import RegardError


@contextlib.contextmanager
def lock_run(run: Path) -> Iterator[None]:
    """Hold the lock of a run within this context. Raises RegardError if another process holds it.

    The system releases the lock when the process ends, however it ends. On Windows there is no lock.
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
