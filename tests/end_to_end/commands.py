"""The regard command in processes of its own, and settings of small runs."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from regard.data.synthetic import dates

# A run whose state includes everything: dropout, accumulation, weight averaging, subword sampling.
SMALL_SETTINGS = [
    "model.encoder.width=32",
    "model.decoder.width=32",
    "model.encoder.layers=1",
    "model.decoder.layers=1",
    "model.encoder.feedforward=64",
    "model.decoder.feedforward=64",
    "data.subwords.kind=bpe",
    "data.subwords.size=400",
    "data.subwords.sampling=0.1",
    "training.batch_tokens=512",
    "training.gradient_accumulation=2",
    "training.ema_decay=0.9",
    "training.averaged_checkpoints=2",
    "training.validate_every=12",
    "training.save_every=2",
    "training.patience=100",
    "training.metric=chrf",
]


def write_dates(path: Path, count: int, split: str = "train") -> Path:
    """A TSV file of dates."""
    path.write_text("".join(f"{text}\t{date}\n" for text, date in dates.pairs(count, split=split)), "utf-8")
    return path


def regard_command(*arguments: object, launcher: Sequence[str] = ("-m",)) -> list[str]:
    """`python -m regard ...`, or through torchrun."""
    return [sys.executable, *launcher, "regard", *map(str, arguments)]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def run_regard(*arguments: object, check: bool = True, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command to its end. check: assert that it succeeds."""
    done = subprocess.run(
        regard_command(*arguments),
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
        timeout=300,
        input=stdin,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def set_options(settings: Sequence[str] = SMALL_SETTINGS) -> list[str]:
    return [argument for setting in settings for argument in ("--set", setting)]
