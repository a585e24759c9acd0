"""How we measure: everything interleaved in one run, and only ratios of medians are believed.

Machines are noisy: absolute times mean nothing beyond the run they come from. Each round times every candidate once, in
turn, so that a slow minute slows all of them.
"""

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Claim:
    """One line of a benchmark: how many times better than the peer, and what was promised."""

    what: str
    peer: str
    ratio: float
    promised: float
    at_most: bool = False  # the promise is an upper bound

    @property
    def holds(self) -> bool:
        return self.ratio <= self.promised if self.at_most else self.ratio >= self.promised

    def __str__(self) -> str:
        bound = "at most" if self.at_most else "at least"
        verdict = "holds" if self.holds else "FALLS SHORT"
        return f"{self.what:<62} {self.ratio:8.2f}x  {self.peer:<34} promised {bound} {self.promised:g}x  {verdict}"


def medians(
    candidates: dict[str, Callable[[], object]], *, seconds: float = 4.0, min_rounds: int = 5
) -> dict[str, float]:
    """Median seconds of each, interleaved, after one call each to warm up."""
    for run in candidates.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in candidates}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < min_rounds:
        for name, run in candidates.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds_taken) for name, seconds_taken in times.items()}


def peak_bytes(run: Callable[[], object]) -> int:
    """The most resident memory above the start while this ran, as the kernel counts it (Linux)."""
    status = Path("/proc/self/status")

    def field(name: str) -> int:
        (line,) = [line for line in status.read_text().splitlines() if line.startswith(name)]
        return int(line.split()[1]) * 1024

    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    before = field("VmRSS")
    run()
    return max(0, field("VmHWM") - before)


def report(claims: list[Claim]) -> None:
    """Print them, and leave with 1 if one falls short."""
    print()
    for claim in claims:
        print(claim)
    failing = [claim for claim in claims if not claim.holds]
    print(f"\n{len(claims) - len(failing)} of {len(claims)} claims hold")
    sys.exit(1 if failing else 0)
