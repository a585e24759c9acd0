"""One process trains a run at a time."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows; there nobody watches
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def only_here(run: Path) -> Iterator[None]:
    """Within this context nobody else can train in this folder. Raises ValueError if somebody does.

    The system lets go of the lock when the process ends, however it ends.
    """
    if fcntl is None:
        yield
        return
    with (run / ".lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{run}: another process is training in it; wait until it ends, or stop it.") from None
        yield
