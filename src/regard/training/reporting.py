"""The progress of a training run: lines and a progress bar in the terminal, and log.jsonl.

`log.jsonl` has one object per line; the kinds are "start", "step", "validation" and "end".
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
from regard.evaluation.metrics import METRICS, LossMetric
from regard.renames import migrate_log_line
from regard.training.validation import ValidationResult

LINE_INTERVAL = 10.0  # seconds between lines if stderr is no terminal


def format_duration(seconds: float) -> str:
    """ "45 s", "12 min", "3 h 20 min" """
    if seconds < 90:
        return f"{max(0, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


class Log:
    """Writes log.jsonl of a run. Lines after step `after`, from which the run resumes, are removed."""

    def __init__(self, path: Path, *, after: int | None, tensorboard: Path | None = None) -> None:
        if after is not None and path.exists():
            lines = [line for line in path.read_text("utf-8").splitlines() if self._is_up_to(line, after)]
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        self._file: TextIO = path.open("a" if after is not None else "w", encoding="utf-8")
        self._tensorboard: Any = None
        if tensorboard is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise RegardError("--tensorboard: it is not installed; pip install tensorboard") from None
            self._tensorboard = SummaryWriter(str(tensorboard), purge_step=after)

    @staticmethod
    def _is_up_to(line: str, step: int) -> bool:
        try:
            record = json.loads(line)
            return int(record["step"]) <= step and record["kind"] != "end"  # it will be written again
        except (ValueError, KeyError, TypeError):  # a truncated line
            return False

    def write(self, kind: str, step: int, **values: Any) -> None:
        """Append a line."""
        self._file.write(json.dumps({"kind": kind, "step": step, **values}, ensure_ascii=False) + "\n")
        self._file.flush()
        if self._tensorboard is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._tensorboard.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Close the log."""
        self._file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """All complete lines."""
    lines = []
    for line in path.read_text("utf-8").splitlines():
        try:
            lines.append(migrate_log_line(json.loads(line)))
        except ValueError:
            continue
    return lines


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """The reader of stderr has exited (`regard train ... | head`): continue without printing."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


class Reporter:
    """Prints progress to stderr: a progress bar in a terminal, occasional lines elsewhere. quiet: prints nothing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._console = _Console(stderr=True, highlight=False, soft_wrap=True)
        self._bar: Progress | None = None
        self._task: Any = None
        self._last_step_line = 0.0
        self._last_preparation_line = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_bar()

    def print_line(self, text: str) -> None:
        """Print a line of text."""
        if not self._quiet:
            self._console.print(text, markup=False)

    def report_step(self, step: int, steps: int, *, loss: float, speed: float | None, remaining_seconds: float) -> None:
        """Report a training step. speed: tokens per second, None while it is not known."""
        if self._quiet:
            return
        description = f"loss {loss:.3f}"
        if speed is not None:
            description += f"  {speed:,.0f} tokens/s  {format_duration(remaining_seconds)} left"
        if not sys.stderr.isatty():
            if time.monotonic() - self._last_step_line > LINE_INTERVAL:
                self._last_step_line = time.monotonic()
                self._console.print(f"step {step:,} of {steps:,}  {description}", markup=False)
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
        self._bar.update(self._task, completed=step, total=steps, description=description)

    def report_preparation(self, what: str, done: int, total: int | None) -> None:
        """Report the progress of data preparation."""
        if self._quiet or time.monotonic() - self._last_preparation_line < 2 or not done:
            return
        self._last_preparation_line = time.monotonic()
        out_of = f" of {total:,}" if total else ""
        self._console.print(f"{what}: {done:,}{out_of}", markup=False)

    def report_validation(self, step: int, result: ValidationResult, *, best: bool) -> None:
        """Report the result of a validation."""
        value = (
            "" if METRICS.get(result.metric).inputs == LossMetric.inputs else f"  {result.metric} {result.value:.2f}"
        )
        suffix = "  the best so far" if best else ""
        self.print_line(
            f"validation at step {step:,}: loss {result.loss:.3f}, perplexity {result.perplexity:.2f}{value}{suffix}"
        )
        for sample in result.samples:
            for label, text in (
                ("  source", sample.source),
                ("   model", sample.output),
                ("     ref", sample.reference),
            ):
                self.print_line(f"{label}  {_truncate(text)}")

    def stop_bar(self) -> None:
        """Remove the progress bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


MAX_SAMPLE_CHARACTERS = 220  # of a sample's source, output or reference


def _truncate(text: str) -> str:
    """Shorten a long text; its end is kept, where a question is."""
    return text if len(text) <= MAX_SAMPLE_CHARACTERS else f"{text[: MAX_SAMPLE_CHARACTERS - 62]} … {text[-59:]}"
