"""Lines of standard input, as they come."""

import contextlib
import queue
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence

from regard.errors import RegardError

MAX_LINES = 4096  # that are processed together, if they are there


def batches_of(inputs: Sequence[str]) -> Iterable[list[str]]:
    """Inputs in batches: the ones given, or the lines of standard input for `-`."""
    return read_batches() if list(inputs) == ["-"] else [list(inputs)]


def read_batches() -> Iterator[list[str]]:
    """The lines that are there, whenever there are some: a typist is answered at once, a file is read in bulk."""
    if sys.stdin is None:
        raise RegardError("there is no input to read; name a text or a file.")
    waiting: queue.Queue[str | None] = queue.Queue(2 * MAX_LINES)
    failed: list[Exception] = []

    def read() -> None:
        try:
            for line in sys.stdin:
                waiting.put(line.rstrip("\r\n"))
        except (OSError, ValueError) as error:
            failed.append(error)
        waiting.put(None)

    threading.Thread(target=read, daemon=True).start()
    more = True
    while more:
        lines = [waiting.get()]
        with contextlib.suppress(queue.Empty):
            while lines[-1] is not None and len(lines) < MAX_LINES:
                lines.append(waiting.get(timeout=0.01))
        more = lines[-1] is not None
        yield [line for line in lines if line is not None]
    if failed:
        raise RegardError(f"the input cannot be read ({failed[0]}); convert it to UTF-8 first.")
