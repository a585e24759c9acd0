"""The training loop: what it saves, when it stops, and how it handles nonfinite losses."""

import json
from pathlib import Path

import pytest
import torch

from regard.runs.bundle import load_bundle
from regard.training.reporting import Log, Reporter, read_log
from regard.training.trainer import Trainer
from tests.training.small_run import small_run


def small_trainer(folder: Path, preset: str = "bahdanau", **training: object) -> Trainer:
    settings, corpus, bundle = small_run(folder, preset, **training)
    return Trainer(settings.training, corpus, bundle, folder, reporter=Reporter(quiet=True))


def test_a_run_ends_with_a_model_that_loads(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path)
    log = Log(tmp_path / "log.jsonl", after=None)
    state = trainer.train(log)
    log.close()
    assert state.done
    assert state.step == 6
    lines = read_log(tmp_path / "log.jsonl")
    assert [line["step"] for line in lines if line["kind"] == "validation"] == [3, 6]
    assert lines[-1]["kind"] == "end"
    loaded = load_bundle(tmp_path).model
    for name, value in trainer.bundle.model.named_parameters():
        assert torch.equal(value, dict(loaded.named_parameters())[name])


def test_a_nonfinite_loss_stops_before_the_weights_change(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path)
    log = Log(tmp_path / "log.jsonl", after=None)
    weights_before = {name: value.detach().clone() for name, value in trainer.bundle.model.named_parameters()}
    original = type(trainer.bundle.model.encoder).forward

    def nonfinite_forward(self: torch.nn.Module, tokens: torch.Tensor, mask: torch.Tensor, **options: bool) -> object:
        encoded = original(self, tokens, mask, **options)
        encoded.states[0, 0, 0] = torch.inf
        return encoded

    trainer.bundle.model.encoder.forward = nonfinite_forward.__get__(trainer.bundle.model.encoder)
    with pytest.raises(FloatingPointError, match=r"at step 1 \(epoch 1, batch 1; examples \d+"):
        trainer.train(log)
    for name, value in trainer.bundle.model.named_parameters():
        assert torch.equal(value, weights_before[name]), "no step was taken"


def test_patience_stops_a_run_without_improvement(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path, learning_rate=1e-12, steps=50, validate_every=1, patience=3, metric="exact")
    log = Log(tmp_path / "log.jsonl", after=None)
    state = trainer.train(log)
    assert state.done
    assert state.step == 4  # the first validation is the best, and three more are no better


def test_epochs_limit_steps(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path, epochs=2, steps=1000)
    per_epoch = len(trainer._epoch_batches(0))
    assert trainer.train(Log(tmp_path / "log.jsonl", after=None)).step == 2 * per_epoch


def test_a_resumed_log_drops_lines_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = [json.dumps({"kind": "step", "step": step}) for step in (1, 5, 9)]
    path.write_text("\n".join(lines) + '\n{"kind": "st')
    log = Log(path, after=5)
    log.write("step", 6, loss=1.0)
    log.close()
    assert [line["step"] for line in read_log(path)] == [1, 5, 6]
