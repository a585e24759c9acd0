"""Training in two processes: the losses of one process, one writer, and a restart after a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.end_to_end.commands import SMALL_SETTINGS, environment, run_regard, set_options, write_dates

pytestmark = pytest.mark.slow

# Without dropout, sampling and averaging, so that only the order of sums can differ.
DETERMINISTIC_SETTINGS = [
    setting for setting in SMALL_SETTINGS if not any(name in setting for name in ("sampling", "ema_decay"))
]
DETERMINISTIC_SETTINGS += ["model.encoder.dropout=0", "model.decoder.dropout=0"]


def torchrun(*arguments: object, restarts: int = 0) -> subprocess.Popen[str]:
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "--max-restarts", str(restarts)]
    command = [sys.executable, *launcher, "-m", "regard", *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def losses(run: Path) -> dict[int, float]:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if line["kind"] in ("step", "validation")}


def test_two_processes_have_the_losses_of_one(tmp_path: Path) -> None:
    data = write_dates(tmp_path / "dates.tsv", 600)
    arguments = [
        "train",
        data,
        "--preset",
        "transformer-tiny",
        *set_options(DETERMINISTIC_SETTINGS),
        "--steps",
        30,
        "--quiet",
    ]
    run_regard(*arguments, "-o", tmp_path / "one")
    process = torchrun(*arguments, "-o", tmp_path / "two")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert one.keys() == two.keys()
    assert len(one) >= 5
    assert max(abs(one[step] - two[step]) for step in one) < 2e-3
    assert output.count("trained. Evaluate it with") == 1, "one process talks"


def test_a_killed_worker_leads_to_a_restart_from_the_checkpoint(tmp_path: Path) -> None:
    data, run = write_dates(tmp_path / "dates.tsv", 600), tmp_path / "run"
    arguments = [
        "train",
        data,
        "--preset",
        "transformer-tiny",
        *set_options(DETERMINISTIC_SETTINGS),
        "--steps",
        400,
        "-o",
        run,
    ]
    process = torchrun(*arguments, restarts=1)
    deadline = time.monotonic() + 120
    while len(list(run.glob("checkpoints/????????"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    workers = subprocess.run(
        ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False
    ).stdout.split()
    assert len(workers) >= 2
    os.kill(int(workers[-1]), signal.SIGKILL)
    output, _ = process.communicate(timeout=400)
    assert process.returncode == 0, output[-3000:]
    assert "Resuming at step" in output
    assert max(int(path.name) for path in run.glob("checkpoints/????????")) == 400
