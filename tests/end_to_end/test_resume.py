"""A run that is killed at any moment and resumed ends with the same bits as an uninterrupted run."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch

from regard.runs.bundle import read_weights
from tests.end_to_end.commands import environment, regard_command, run_regard, set_options, write_dates

STEPS = 40


def final_state(run: Path) -> dict[str, torch.Tensor]:
    """All tensors of the last checkpoint and of the model."""
    last = max(run.glob("checkpoints/????????"))
    assert int(last.name) == STEPS
    groups = {path.stem: read_weights(path) for path in [*last.glob("*.safetensors"), run / "model.safetensors"]}
    assert {"weights", "optimizer", "average", "model"} <= set(groups)
    return {f"{group}/{name}": value for group, tensors in groups.items() for name, value in tensors.items()}


def kill_after(process: subprocess.Popen[bytes], run: Path, *, inside_save: bool, seconds: float) -> None:
    """SIGKILL after some time, or as soon as a checkpoint is being written once that time has passed."""
    deadline = time.monotonic() + 120
    started: float | None = None
    while process.poll() is None and time.monotonic() < deadline:
        if started is None and (run / "log.jsonl").exists():
            started = time.monotonic()
        late = started is not None and time.monotonic() - started > seconds
        if late and (not inside_save or any(run.glob("checkpoints/*.tmp"))):
            process.kill()
            break
        time.sleep(0.0005)
    process.wait(timeout=60)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_a_killed_run_ends_with_the_same_bits(tmp_path: Path, seed: int) -> None:
    data = write_dates(tmp_path / "dates.tsv", 600)
    arguments = ["train", data, "--preset", "transformer-tiny", *set_options(), "--steps", STEPS, "--quiet"]
    run_regard(*arguments, "-o", tmp_path / "uninterrupted")
    run = tmp_path / "killed"
    rng = random.Random(seed)
    kills = 0
    for attempt in range(3):
        start = [*arguments, "-o", run] if attempt == 0 else ["train", "--resume", run, "--quiet"]
        process = subprocess.Popen(regard_command(*start), env=environment(), stderr=subprocess.DEVNULL)
        kill_after(process, run, inside_save=attempt != 1, seconds=rng.uniform(0.0, 0.6))
        kills += process.returncode == -9
        assert process.returncode in (-9, 0)
    assert kills >= 2, "the run was over before it could be killed; make it longer"
    run_regard("train", "--resume", run, "--quiet")
    uninterrupted, resumed = final_state(tmp_path / "uninterrupted"), final_state(run)
    assert uninterrupted.keys() == resumed.keys()
    different = [name for name in uninterrupted if not torch.equal(uninterrupted[name], resumed[name])]
    assert not different
    assert not list(run.glob("checkpoints/*.tmp"))


@pytest.mark.slow
def test_a_damaged_checkpoint_is_skipped_and_reported(tmp_path: Path) -> None:
    data = write_dates(tmp_path / "dates.tsv", 300)
    run = tmp_path / "run"
    run_regard("train", data, "--preset", "transformer-tiny", *set_options(), "--steps", 6, "-o", run, "--quiet")
    *_, before, last = sorted(run.glob("checkpoints/????????"))
    damaged = last / "weights.safetensors"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    done = run_regard("train", "--resume", run, "--steps", 8)
    assert f"The checkpoint of step {int(last.name)} is damaged (weights.safetensors has changed)" in done.stderr
    assert f"Resuming at step {int(before.name)}" in done.stderr
    assert max(int(path.name) for path in run.glob("checkpoints/????????")) == 8


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_a_checkpoint_and_prints_how_to_resume(number: signal.Signals, tmp_path: Path) -> None:
    data = write_dates(tmp_path / "dates.tsv", 300)
    run = tmp_path / "run"
    arguments = ["train", data, "--preset", "transformer-tiny", *set_options(), "--steps", 5000, "-o", run]
    process = subprocess.Popen(regard_command(*arguments), env=environment(), stderr=subprocess.PIPE, text=True)
    while not (run / "log.jsonl").exists() or '"step": 10' not in (run / "log.jsonl").read_text():
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + number, "what comes after must not take it for finished"
    assert f"go on with: regard train --resume {run}" in stderr
    stopped = max(int(path.name) for path in run.glob("checkpoints/????????"))
    assert f"Stopped at step {stopped:,}" in stderr
