"""Complexity per layer, measured: time, memory, sequential steps and paths beside table 1 of Vaswani et al. 2017.

    python -m bench.complexity                              # the table, in about four minutes
    python -m bench.complexity -o docs/complexity.png       # and the picture
    python -m bench.complexity --json > run.json            # everything, for programs
    python -m bench.complexity --from run.json -o some.png  # table and picture of an earlier run

Times are of the processor, one thread: what else the machine does then counts little. Each round runs every layer at
every size once, in turn, and in a process of its own, because where things happen to lie in memory tells, too; medians
of rounds are fitted. Peaks of memory are measured as bench/memory.py does, each in a process of its own.
"""

import argparse
import contextlib
import ctypes
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from multiprocessing.pool import Pool
from pathlib import Path

import torch

from bench import complexity_picture, complexity_table
from bench.dependence import NARROW, longest_path, sequential_steps
from bench.exponents import Curve, Fit
from bench.layers import LAYERS, Layer, Sizes, both, forward
from bench.measure import peak_bytes
from regard import native
from regard.training.allocator import M_MMAP_THRESHOLD

SHORT, LONG = 0.02, 0.2  # seconds: what takes less is repeated; what takes more needs no warming up
SMALL = Sizes(n=64, d=64)
PASSES: dict[str, Callable[[Layer, Sizes], Callable[[], object]]] = {"forward": forward, "both": both}


@dataclass(frozen=True)
class Ladder:
    """The sizes that one axis goes through, and what the others are meanwhile."""

    axis: str
    base: Sizes
    sizes: tuple[int, ...]
    among: Callable[[Layer], bool] = lambda layer: True

    def at(self, size: int) -> Sizes:
        return self.base.along(self.axis, size)

    def layers(self) -> list[Layer]:
        """Those that have this axis."""
        return [layer for layer in LAYERS if self.axis in layer.axes and self.among(layer)]

    @property
    def told(self) -> str:
        """What stays as it is, for people."""
        return ", ".join(f"{axis} = {getattr(self.base, axis)}" for axis in "nd" if axis != self.axis)


LENGTHS = (512, 1024, 2048, 4096, 8192)
WIDTHS = Ladder("d", Sizes(n=256, d=0), (64, 128, 256, 512, 1024, 2048))
KERNELS = Ladder("k", Sizes(n=1024, d=128), (3, 5, 9, 17, 33, 65))
RADII = Ladder("r", Sizes(n=4096, d=128), (16, 32, 64, 128, 256, 512))
TIMED = [Ladder("n", Sizes(n=0, d=128), (128, 256, *LENGTHS)), WIDTHS, KERNELS, RADII]
# Wider and longer, so that what grows with n stands above the megabyte or two that kernels take at any length.
WEIGHED = [
    Ladder("n", Sizes(n=0, d=256), LENGTHS, lambda layer: layer.quadratic),
    Ladder("n", Sizes(n=0, d=256), (*LENGTHS, 16384, 32768), lambda layer: not layer.quadratic),
    WIDTHS,
    KERNELS,
    RADII,
]
# What depends on what has no noise: here short and narrow sequences tell as much as others.
COUNTED = [
    Ladder("n", Sizes(n=0, d=NARROW), (64, 128, 256, 512)),
    Ladder("k", Sizes(n=257, d=NARROW), (3, 5, 9, 17, 33, 65)),
    Ladder("r", Sizes(n=257, d=NARROW), (4, 8, 16, 32, 64, 128)),
]


def jobs(ladders: list[Ladder]) -> list[tuple[Ladder, Layer, str]]:
    """Every layer on every ladder that it has, forward and both."""
    return [(ladder, layer, way) for ladder in ladders for layer in ladder.layers() for way in PASSES]


def _fresh() -> Pool:
    """A new process for each call, forked from this one, which has only imported things."""
    native.library()
    return multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1)


def memory() -> Iterator[Curve]:
    """Peaks above the inputs and weights, in bytes."""
    found = jobs(WEIGHED)
    places = [(number, size) for number, (ladder, _, _) in enumerate(found) for size in ladder.sizes]
    print(f"memory at {len(places)} sizes, each in its own process", file=sys.stderr, flush=True)
    with _fresh() as pool:
        peaks = pool.imap(_peak, places, chunksize=1)
        for ladder, layer, way in found:
            here = [float(max(1, next(peaks))) for _ in ladder.sizes]
            yield Curve.of(layer.name, ladder.axis, f"{way} memory", ladder.told, ladder.sizes, [here])


def _peak(place: tuple[int, int]) -> int:
    ladder, layer, way = jobs(WEIGHED)[place[0]]
    with contextlib.suppress(AttributeError):  # other C libraries have nothing to set
        # Every tensor in pages of its own: the peak is what lives, not how the heap was cut up before.
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 16)
    small, large = PASSES[way](layer, SMALL), PASSES[way](layer, ladder.at(place[1]))
    small()  # code and workspaces are there before counting starts
    return peak_bytes(large)


def times(rounds: int) -> Iterator[Curve]:
    """Seconds of the processor."""
    with _fresh() as pool:
        taken = list(pool.imap(_round, range(rounds), chunksize=1))  # [rounds, jobs, sizes]
    for number, (ladder, layer, way) in enumerate(jobs(TIMED)):
        yield Curve.of(layer.name, ladder.axis, way, ladder.told, ladder.sizes, [each[number] for each in taken])


def _round(number: int) -> list[list[float]]:
    """Every layer at every size once, in turn. [jobs, sizes]"""
    print(f"round {number + 1} of time", file=sys.stderr, flush=True)
    return [
        [_taken(PASSES[way](layer, ladder.at(size))) for size in ladder.sizes] for ladder, layer, way in jobs(TIMED)
    ]


def _taken(run: Callable[[], object]) -> float:
    """Of one call; short ones are warmed up and repeated."""
    often, taken = 1, _clocked(run, 1)
    if taken < LONG:
        often = 1 + int(SHORT / taken)
        taken = _clocked(run, often)
    return taken / often


def _clocked(run: Callable[[], object], often: int) -> float:
    start = time.process_time()
    for _ in range(often):
        run()
    return time.process_time() - start


def dependence() -> Iterator[Curve]:
    """Sequential steps and longest paths."""
    for ladder in COUNTED:
        for layer in ladder.layers():
            for what, count in (("steps", sequential_steps), ("path", longest_path)):
                found = [float(count(layer, ladder.at(size))) for size in ladder.sizes]
                yield Curve.of(layer.name, ladder.axis, what, ladder.told, ladder.sizes, [found])


def machine() -> str:
    """What this ran on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown processor")
    return f"{name}, one thread, PyTorch {torch.__version__}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.complexity", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, help="draw the picture here (.png, .svg, .pdf)")
    parser.add_argument("--json", action="store_true", help="print everything measured as JSON")
    parser.add_argument("--from", dest="earlier", type=Path, help="an earlier run's JSON, instead of measuring")
    parser.add_argument("--rounds", type=int, default=7, help="how often everything is timed (7)")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.earlier:
        stored = json.loads(given.earlier.read_text())
        where = stored["machine"]
        measured = [Curve(**{**each, "fit": Fit(**each["fit"])}) for each in stored["curves"]]
    else:
        where, measured = machine(), [*memory(), *times(given.rounds), *dependence()]
    if given.output:
        complexity_picture.draw(measured, given.output)
    if given.json:
        print(json.dumps({"machine": where, "curves": [asdict(curve) for curve in measured]}))
    else:
        complexity_table.show(measured, where)


if __name__ == "__main__":
    main()
