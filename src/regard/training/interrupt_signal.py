"""SIGINT and SIGTERM as requests to stop: training ends after the current step, with a checkpoint."""

import signal
from typing import Any


class InterruptSignal:
    """A context in which SIGINT and SIGTERM set `received`; a second one interrupts at once.

    number: the signal.
    """

    def __init__(self) -> None:
        self.received = False
        self.number = signal.SIGINT.value
        self._previous_handlers: dict[int, Any] = {}

    def __enter__(self) -> "InterruptSignal":
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self._previous_handlers[number] = signal.signal(number, self._receive)
            except ValueError:  # not in the main thread: its caller handles signals
                continue
        return self

    def _receive(self, number: int, frame: Any) -> None:
        if self.received:
            raise KeyboardInterrupt
        self.received, self.number = True, number

    def __exit__(self, *error: object) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)
