"""What a person sees of a training run, and what is written about it.

`log.jsonl` has one object a line; the kinds are "start", "step", "validation" and "end".
"""

import json
import os
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from regard.errors import RegardError
from regard.training.validation import Judgement

EVERY = 10.0  # seconds between lines where there is no terminal


def readable_time(seconds: float) -> str:
    """ "45 s", "12 min", "3 h 20 min" """
    if seconds < 90:
        return f"{max(0, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


class Log:
    """log.jsonl of a run. Resuming removes what was logged after the checkpoint that is resumed from."""

    def __init__(self, path: Path, *, after: int | None, tensorboard: Path | None = None) -> None:
        if after is not None and path.exists():
            kept = [line for line in path.read_text("utf-8").splitlines() if self._belongs(line, after)]
            path.write_text("".join(f"{line}\n" for line in kept), "utf-8")
        self._file: TextIO = path.open("a" if after is not None else "w", encoding="utf-8")
        self._board: Any = None
        if tensorboard is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise RegardError("--tensorboard: it is not installed; pip install tensorboard") from None
            self._board = SummaryWriter(str(tensorboard), purge_step=after)

    @staticmethod
    def _belongs(line: str, step: int) -> bool:
        try:
            record = json.loads(line)
            return int(record["step"]) <= step and record["kind"] != "end"  # which is written again
        except (ValueError, KeyError, TypeError):  # a line cut by a kill
            return False

    def write(self, kind: str, step: int, **values: Any) -> None:
        """One line."""
        self._file.write(json.dumps({"kind": kind, "step": step, **values}, ensure_ascii=False) + "\n")
        self._file.flush()
        if self._board is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """No more."""
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """All lines that are whole."""
    lines = []
    for line in path.read_text("utf-8").splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Whoever read along has gone (`regard train ... | head`): go on in silence."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


class Reporter:
    """Talks to a person: a progress bar in a terminal, a line now and then elsewhere. `quiet` says nothing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._console = _Console(stderr=True, highlight=False, soft_wrap=True)
        self._bar: Progress | None = None
        self._task: Any = None
        self._said = 0.0
        self._read = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_bar()

    def tell(self, text: str) -> None:
        """A sentence or a table."""
        if not self._quiet:
            self._console.print(text, markup=False)

    def step(self, step: int, steps: int, *, loss: float, speed: float | None, left: float) -> None:
        """After each step. `speed`: None as long as it is not known."""
        if self._quiet:
            return
        about = f"loss {loss:.3f}"
        if speed is not None:
            about += f"  {speed:,.0f} tokens/s  {readable_time(left)} left"
        if not sys.stderr.isatty():
            if time.monotonic() - self._said > EVERY:
                self._said = time.monotonic()
                self._console.print(f"step {step:,} of {steps:,}  {about}", markup=False)
            return
        if self._bar is None:
            columns = (
                TextColumn("step {task.completed:,} of {task.total:,}"),
                BarColumn(),
                TextColumn("{task.description}"),
            )
            self._bar = Progress(*columns, console=self._console, transient=True, refresh_per_second=5)
            self._bar.start()
            self._task = self._bar.add_task("", total=steps)
        self._bar.update(self._task, completed=step, total=steps, description=about)

    def reading(self, what: str, done: int, total: int | None) -> None:
        """While data is prepared."""
        if self._quiet or time.monotonic() - self._read < 2 or not done:
            return
        self._read = time.monotonic()
        of = f" of {total:,}" if total else ""
        self._console.print(f"{what}: {done:,}{of}", markup=False)

    def validated(self, step: int, judgement: Judgement, *, best: bool) -> None:
        """After a validation."""
        value = "" if judgement.measure == "loss" else f"  {judgement.measure} {judgement.value:.2f}"
        mark = "  the best so far" if best else ""
        self.tell(
            f"validation at step {step:,}: loss {judgement.loss:.3f}, perplexity {judgement.perplexity:.2f}"
            f"{value}{mark}"
        )
        for sample in judgement.samples:
            for label, text in (
                ("  source", sample.source),
                ("   model", sample.output),
                ("     ref", sample.reference),
            ):
                self.tell(f"{label}  {_shown(text)}")

    def stop_bar(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


SHOWN = 220  # characters of a sample


def _shown(text: str) -> str:
    """What fits a line or two; of a long text its end, too, where a question stands."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 62]} … {text[-59:]}"
