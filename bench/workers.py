"""Candidates that each need a process of their own, timed in turn, so that they do not affect each other.

A worker is a module with `main(arguments)` that calls `serve(step)`. The parent asks for one measurement at a time and
interleaves, so that a slow minute slows all of them.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import IO


class Worker:
    """One candidate in its own process, one thread."""

    def __init__(self, module: str, *arguments: str, threads: int = 1) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in: IO[str] = self._process.stdin
        self._out: IO[str] = self._process.stdout
        self._answer()

    def _answer(self) -> float:
        line = self._out.readline()
        if not line:
            raise RuntimeError("a worker ended without an answer; its complaint is above")
        return float(json.loads(line))

    def measure(self) -> float:
        """Seconds of one measurement."""
        self._in.write("go\n")
        self._in.flush()
        return self._answer()

    def close(self) -> None:
        self._in.close()
        self._process.wait(timeout=60)


def serve(step: Callable[[], object]) -> None:
    """In the worker: answer each line with the seconds that a step took."""
    step()
    print(json.dumps(0.0), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        step()
        print(json.dumps(time.perf_counter() - start), flush=True)


def interleaved(workers: dict[str, Worker], rounds: int) -> dict[str, float]:
    """Median seconds of each worker's measurement."""
    times: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            times[name].append(worker.measure())
    for worker in workers.values():
        worker.close()
    return {name: statistics.median(seconds_taken) for name, seconds_taken in times.items()}
