"""Inputs in batches; lines of standard input as they arrive."""

import contextlib
import queue
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence

from regard.errors import RegardError

MAX_LINES = 4096  # in a batch
FILE_NAME = re.compile(r"\S+\.(txt|tsv|csv|jsonl|text)(\.gz)?")  # a file's name rather than a text


def input_batches(inputs: Sequence[str]) -> Iterable[list[str]]:
    """Inputs in batches: the ones given, or the lines of standard input for `-`."""
    return read_batches() if list(inputs) == ["-"] else [list(inputs)]


def read_batches() -> Iterator[list[str]]:
    """Lines of standard input in batches of those available: interactive input is answered at once, files in bulk."""
    if sys.stdin is None:
        raise RegardError("there is no input to read; name a text or a file.")
    lines_read: queue.Queue[str | None] = queue.Queue(2 * MAX_LINES)
    errors: list[Exception] = []

    def read() -> None:
        try:
            for line in sys.stdin:
                lines_read.put(line.rstrip("\r\n"))
        except (OSError, ValueError) as error:
            errors.append(error)
        lines_read.put(None)

    threading.Thread(target=read, daemon=True).start()
    more = True
    while more:
        lines = [lines_read.get()]
        with contextlib.suppress(queue.Empty):
            while lines[-1] is not None and len(lines) < MAX_LINES:
                lines.append(lines_read.get(timeout=0.01))
        more = lines[-1] is not None
        yield [line for line in lines if line is not None]
    if errors:
        raise RegardError(f"the input cannot be read ({errors[0]}); convert it to UTF-8 first.")
