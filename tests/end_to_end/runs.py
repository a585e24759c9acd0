"""Small runs of the real command, in real processes."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from regard.data.synthetic import dates

# A model and a schedule that use everything that could be lost: dropout, accumulation, averages, sampled subwords.
SMALL = [
    "model.encoder.width=32",
    "model.decoder.width=32",
    "model.encoder.layers=1",
    "model.decoder.layers=1",
    "model.encoder.feedforward=64",
    "model.decoder.feedforward=64",
    "data.subwords.kind=bpe",
    "data.subwords.size=400",
    "data.subwords.sampling=0.1",
    "training.tokens=512",
    "training.accumulate=2",
    "training.average=0.9",
    "training.best=2",
    "training.validate_every=12",
    "training.save_every=2",
    "training.patience=100",
    "training.metric=chrf",
]


def write_dates(path: Path, count: int, part: str = "train") -> Path:
    """A TSV file of dates."""
    path.write_text("".join(f"{text}\t{date}\n" for text, date in dates.pairs(count, split=part)), "utf-8")
    return path


def command(*arguments: object, launcher: Sequence[str] = ("-m",)) -> list[str]:
    """`python -m regard ...`, or through torchrun."""
    return [sys.executable, *launcher, "regard", *map(str, arguments)]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def regard(*arguments: object, check: bool = True, give: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, env=environment(), check=False, timeout=300, input=give
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def small(settings: Sequence[str] = SMALL) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]
