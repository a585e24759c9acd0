"""Complexity per layer, measured: time, memory, sequential steps and paths beside table 1 of Vaswani et al. 2017.

    python -m bench.complexity                              # the table, in about four minutes
    python -m bench.complexity -o docs/complexity.png       # and the picture
    python -m bench.complexity --json > run.json            # everything, for programs
    python -m bench.complexity --from run.json -o some.png  # table and picture of an earlier run

Times are CPU times of one thread, which other load on the machine affects little. Each round runs every layer at every
size once, in turn, and in a process of its own, because memory layout affects times; medians of rounds are fitted.
Peak memory is measured as in bench/memory.py, each measurement in a process of its own.
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

from bench import complexity_plot, complexity_table
from bench.dependency_depth import NARROW, longest_path, sequential_steps
from bench.layers import LAYERS, Layer, Sizes, forward, forward_and_backward
from bench.measure import peak_bytes
from bench.power_law import Curve, Fit
from regard import native
from regard.training.malloc_tuning import M_MMAP_THRESHOLD

MIN_TIMED_SECONDS, WARM_UP_LIMIT = (
    0.02,
    0.2,
)  # seconds: what takes less is repeated; what takes more needs no warming up
SMALL = Sizes(n=64, d=64)
PASSES: dict[str, Callable[[Layer, Sizes], Callable[[], object]]] = {"forward": forward, "both": forward_and_backward}


@dataclass(frozen=True)
class SizeSweep:
    """The sizes along one axis, and the constant sizes of the others."""

    axis: str
    base: Sizes
    sizes: tuple[int, ...]
    applies_to: Callable[[Layer], bool] = lambda layer: True

    def sizes_at(self, size: int) -> Sizes:
        return self.base.with_size(self.axis, size)

    def layers(self) -> list[Layer]:
        """The layers that have this axis."""
        return [layer for layer in LAYERS if self.axis in layer.axes and self.applies_to(layer)]

    @property
    def fixed_sizes(self) -> str:
        """The constant sizes, as text."""
        return ", ".join(f"{axis} = {getattr(self.base, axis)}" for axis in "nd" if axis != self.axis)


LENGTHS = (512, 1024, 2048, 4096, 8192)
WIDTHS = SizeSweep("d", Sizes(n=256, d=0), (64, 128, 256, 512, 1024, 2048))
KERNELS = SizeSweep("k", Sizes(n=1024, d=128), (3, 5, 9, 17, 33, 65))
RADII = SizeSweep("r", Sizes(n=4096, d=128), (16, 32, 64, 128, 256, 512))
TIME_SWEEPS = [SizeSweep("n", Sizes(n=0, d=128), (128, 256, *LENGTHS)), WIDTHS, KERNELS, RADII]
# Wider and longer, so that growth with n exceeds the megabyte or two that kernels take at any length.
MEMORY_SWEEPS = [
    SizeSweep("n", Sizes(n=0, d=256), LENGTHS, lambda layer: layer.quadratic),
    SizeSweep("n", Sizes(n=0, d=256), (*LENGTHS, 16384, 32768), lambda layer: not layer.quadratic),
    WIDTHS,
    KERNELS,
    RADII,
]
# Counts have no noise, so short and narrow sequences suffice.
COUNT_SWEEPS = [
    SizeSweep("n", Sizes(n=0, d=NARROW), (64, 128, 256, 512)),
    SizeSweep("k", Sizes(n=257, d=NARROW), (3, 5, 9, 17, 33, 65)),
    SizeSweep("r", Sizes(n=257, d=NARROW), (4, 8, 16, 32, 64, 128)),
]


def jobs(sweeps: list[SizeSweep]) -> list[tuple[SizeSweep, Layer, str]]:
    """Every layer on every sweep of its axes, forward and both."""
    return [(sweep, layer, direction) for sweep in sweeps for layer in sweep.layers() for direction in PASSES]


def _fresh_process_pool() -> Pool:
    """A new process for each call, forked from this one, which has only imported modules."""
    native.library()
    return multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1)


def memory() -> Iterator[Curve]:
    """Peaks above the inputs and weights, in bytes."""
    all_jobs = jobs(MEMORY_SWEEPS)
    measurements = [(number, size) for number, (sweep, _, _) in enumerate(all_jobs) for size in sweep.sizes]
    print(f"memory at {len(measurements)} sizes, each in its own process", file=sys.stderr, flush=True)
    with _fresh_process_pool() as pool:
        peaks = pool.imap(_peak, measurements, chunksize=1)
        for sweep, layer, direction in all_jobs:
            peak_bytes_by_size = [float(max(1, next(peaks))) for _ in sweep.sizes]
            yield Curve.from_rounds(
                layer.name, sweep.axis, f"{direction} memory", sweep.fixed_sizes, sweep.sizes, [peak_bytes_by_size]
            )


def _peak(measurement: tuple[int, int]) -> int:
    sweep, layer, direction = jobs(MEMORY_SWEEPS)[measurement[0]]
    with contextlib.suppress(AttributeError):  # other C libraries have nothing to set
        # Every tensor in pages of its own, so that the peak does not depend on heap fragmentation.
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 16)
    small, large = PASSES[direction](layer, SMALL), PASSES[direction](layer, sweep.sizes_at(measurement[1]))
    small()  # code and workspaces are loaded before counting starts
    return peak_bytes(large)


def times(rounds: int) -> Iterator[Curve]:
    """Seconds of the processor."""
    with _fresh_process_pool() as pool:
        seconds = list(pool.imap(_round, range(rounds), chunksize=1))  # [rounds, jobs, sizes]
    for number, (sweep, layer, direction) in enumerate(jobs(TIME_SWEEPS)):
        yield Curve.from_rounds(
            layer.name, sweep.axis, direction, sweep.fixed_sizes, sweep.sizes, [record[number] for record in seconds]
        )


def _round(number: int) -> list[list[float]]:
    """Every layer at every size once, in turn. [jobs, sizes]"""
    print(f"round {number + 1} of time", file=sys.stderr, flush=True)
    return [
        [_time_call(PASSES[direction](layer, sweep.sizes_at(size))) for size in sweep.sizes]
        for sweep, layer, direction in jobs(TIME_SWEEPS)
    ]


def _time_call(run: Callable[[], object]) -> float:
    """Seconds of one call; short ones are warmed up and repeated."""
    repeats, seconds = 1, _cpu_seconds(run, 1)
    if seconds < WARM_UP_LIMIT:
        repeats = 1 + int(MIN_TIMED_SECONDS / seconds)
        seconds = _cpu_seconds(run, repeats)
    return seconds / repeats


def _cpu_seconds(run: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        run()
    return time.process_time() - start


def dependence() -> Iterator[Curve]:
    """Sequential steps and longest paths."""
    for sweep in COUNT_SWEEPS:
        for layer in sweep.layers():
            for what, count in (("steps", sequential_steps), ("path", longest_path)):
                counts = [float(count(layer, sweep.sizes_at(size))) for size in sweep.sizes]
                yield Curve.from_rounds(layer.name, sweep.axis, what, sweep.fixed_sizes, sweep.sizes, [counts])


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
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.earlier:
        stored = json.loads(arguments.earlier.read_text())
        machine_name = stored["machine"]
        curves = [Curve(**{**record, "fit": Fit(**record["fit"])}) for record in stored["curves"]]
    else:
        machine_name, curves = machine(), [*memory(), *times(arguments.rounds), *dependence()]
    if arguments.output:
        complexity_plot.draw(curves, arguments.output)
    if arguments.json:
        print(json.dumps({"machine": machine_name, "curves": [asdict(curve) for curve in curves]}))
    else:
        complexity_table.show(curves, machine_name)


if __name__ == "__main__":
    main()
