"""Peak memory, forward and backward, as the kernel counts resident pages: the claims, and every cell against T.

    python -m bench.memory                      # the claims
    python -m bench.memory docs/memory.png      # and the picture of every cell (about ten minutes)

Each measurement runs in a process of its own, so that none is affected by another.
"""

import itertools
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.measure import Claim, peak_bytes, report
from regard import native

SCORES = ["dot", "scaled-dot", "cosine", "bilinear", "additive", "function"]
EXTENTS = ["global", "causal", "window", "local-m", "local-p"]
NORMALIZERS = ["softmax", "hard", "sparsemax", "entmax", "sigmoid", "none"]
LENGTHS = [1024, 2048, 4096, 8192]
WIDTH, HEADS = 32, 2


def measure_all(jobs: Sequence[tuple[str, ...]]) -> Iterator[int]:
    """Peaks in bytes, in order. Each job runs in a fresh fork of a process that has only imported modules."""
    import torch

    import regard.attention.functional  # noqa: F401  # imported once, before the forks

    torch.set_num_threads(1)
    native.library()
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        yield from pool.imap(measure_job, jobs, chunksize=1)


def measure_job(job: tuple[str, ...]) -> int:
    """What a fresh process measures."""
    import torch

    what, *arguments = job
    torch.manual_seed(0)
    builders: dict[str, Callable[..., Callable[[], object]]] = {
        "usual additive": _usual_additive,
        "additive": _additive,
        "window": _window,
        "cell": _cell,
    }
    small, large = builders[what](*arguments, small=True), builders[what](*arguments, small=False)
    small()  # code, threads and workspaces are there before counting starts
    return peak_bytes(large)


def _additive_inputs(small: bool) -> Any:
    import torch

    from regard.attention import Additive

    T, D = (32 if small else 1024), 256
    return Additive(D, D, D), *(torch.randn(1, 1, T, D, requires_grad=True) for _ in range(3))


def _usual_additive(small: bool) -> Callable[[], object]:
    import torch

    score, q, k, v = _additive_inputs(small)

    def run() -> None:
        a = q[:, 0] @ score.weight_query[0].t() + score.bias[0]
        b = k[:, 0] @ score.weight_key[0].t()
        (torch.softmax(torch.tanh(a[:, :, None] + b[:, None]) @ score.v[0], -1) @ v[:, 0]).sum().backward()

    return run


def _additive(small: bool) -> Callable[[], object]:
    from regard.attention import attend

    score, q, k, v = _additive_inputs(small)
    return lambda: attend(q, k, v, score=score).sum().backward()


def _window(length: str, small: bool) -> Callable[[], object]:
    import torch

    from regard.attention import Window, attend

    x = [torch.randn(1, 4, 512 if small else int(length), 64, requires_grad=True) for _ in range(3)]
    return lambda: attend(*x, extent=Window(64)).sum().backward()


def _cell(score: str, extent: str, normalize: str, length: str, small: bool) -> Callable[[], object]:
    import torch

    from regard.attention import Additive, Bilinear, Hard, LocalMonotonic, LocalPredictive, Window, attend

    T = 64 if small else int(length)
    x = [torch.randn(1, HEADS, T, WIDTH, requires_grad=True) for _ in range(3)]
    choices: dict[str, Any] = {
        "bilinear": Bilinear(WIDTH, WIDTH, heads=HEADS),
        "additive": Additive(WIDTH, WIDTH, heads=HEADS),
        "function": lambda q, k: -torch.cdist(q, k, p=1),
        "window": Window(32),
        "local-m": LocalMonotonic(32),
        "local-p": LocalPredictive(WIDTH, radius=32.0, heads=HEADS),
        "hard": Hard("gumbel"),
    }
    options = {"score": score, "extent": extent, "normalize": normalize}
    options_by_axis = {axis: choices.get(name, name) for axis, name in options.items()}
    return lambda: attend(*x, **options_by_axis).sum().backward()


def claims() -> list[Claim]:
    """What the README says about memory."""
    lengths = (2048, 4096, 8192, 16384)
    baseline, regard_peak, *windows = measure_all(
        [("usual additive",), ("additive",), *(("window", str(t)) for t in lengths)]
    )
    print(
        f"additive, T = 1024, width 256: broadcast tanh {baseline / 2**20:.0f} MiB, "
        f"regard {regard_peak / 2**20:.1f} MiB"
    )
    peaks = dict(zip(lengths, windows, strict=True))
    print("window r = 64, 4 heads of 64:", ", ".join(f"T {t}: {p / 2**20:.0f} MiB" for t, p in peaks.items()))
    worst = max(peaks[2 * t] / peaks[t] for t in (2048, 4096, 8192))
    return [
        Claim("additive, T = 1024: times less extra memory", "broadcast tanh", baseline / regard_peak, 50),
        Claim(
            "window memory, worst growth per doubling of T to 16384",
            "itself at half the length",
            worst,
            2.3,
            at_most=True,
        ),
    ]


def picture(path: Path) -> None:
    """Every cell's peak against T, beside one Tq x Tk matrix."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    cells = list(itertools.product(SCORES, EXTENTS, NORMALIZERS))
    peaks_by_cell: dict[tuple[str, str, str], list[float]] = {cell: [] for cell in cells}
    jobs = [("cell", *cell, str(length)) for cell in cells for length in LENGTHS]
    for number, (job, peak) in enumerate(zip(jobs, measure_all(jobs), strict=True)):
        peaks_by_cell[job[1], job[2], job[3]].append(peak / 2**20)
        print(f"{number + 1}/{len(jobs)}  {' · '.join(job[1:])}: {peak / 2**20:.0f} MiB", flush=True)
    figure, grid = plt.subplots(
        len(SCORES), len(EXTENTS), figsize=(15, 15), sharex=True, sharey=True, layout="constrained"
    )
    matrix = [HEADS * t * t * 4 / 2**20 for t in LENGTHS]
    for row, score in zip(grid, SCORES, strict=True):
        for frame, extent in zip(row, EXTENTS, strict=True):
            for normalize in NORMALIZERS:
                frame.loglog(
                    LENGTHS, [max(0.5, x) for x in peaks_by_cell[score, extent, normalize]], marker=".", label=normalize
                )
            frame.loglog(LENGTHS, matrix, color="gray", linestyle="--", label="one T × T matrix")
            frame.set_title(f"{score} · {extent}", fontsize=9)
            frame.set_xticks(LENGTHS, [str(t) for t in LENGTHS], fontsize=8)
            frame.xaxis.minorticks_off()
            frame.grid(alpha=0.3)
    grid[0][0].legend(fontsize=7)
    figure.supxlabel("sequence length T")
    figure.supylabel("peak memory of forward and backward, MiB above the inputs")
    figure.suptitle(f"Every cell of the grid: {HEADS} heads of {WIDTH}, batch 1, float32, radius 32")
    figure.savefig(path, dpi=70)
    growth = {cell: values[-1] / values[-2] for cell, values in peaks_by_cell.items()}
    worst = max(growth, key=lambda cell: growth[cell])
    print(f"largest growth from T = {LENGTHS[-2]} to {LENGTHS[-1]}: {growth[worst]:.2f}x ({' · '.join(worst)})")


def main() -> None:
    if sys.argv[1:]:
        picture(Path(sys.argv[1]))
    report(claims())


if __name__ == "__main__":
    main()
