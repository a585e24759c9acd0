"""Runs of format 1, saved before settings and tasks were renamed, are migrated when they are read."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from regard import renames
from regard.errors import RegardError
from regard.loading import load
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings, RecurrentDecoderSettings
from regard.runs.bundle import read_weights
from regard.runs.folder import open_run
from regard.settings import read_toml
from regard.tasks.base import task_from_description
from regard.training.reporting import read_log
from regard.training.run import read_run_settings
from regard.training.settings import run_settings
from tests.end_to_end.commands import run_regard

UNFINISHED = Path(__file__).parent / "format-1-unfinished"  # killed at step 10 of 20
# Models in the settings of format 1, and the names and shapes that their weights had.
MODELS: dict[str, Any] = json.loads((Path(__file__).parent / "format-1" / "tensor_names.json").read_text())
RUN = Path(__file__).parent / "format-1"
EXPECTED = [("number  number: dog red", -0.70773), ("number 1: cat big", -0.95924), ("number 1:: cat red", -0.87608)]


def test_settings_of_format_1_are_migrated() -> None:
    settings = read_run_settings(RUN)
    assert settings.task == "translation"
    assert settings.training.metric == "chrf"
    assert settings.training.coverage_loss == pytest.approx(0.1)
    assert isinstance(settings.model.decoder, RecurrentDecoderSettings)
    assert settings.model.decoder.normalize == "sparsemax"
    description = open_run(RUN).description
    assert description.format == 1
    assert task_from_description(description).name == "translation"


@pytest.mark.parametrize("engine", ["torch", "auto"])
def test_a_run_of_format_1_translates_as_before(tmp_path: Path, engine: str) -> None:
    shutil.copytree(RUN, tmp_path / "run")
    texts = ["the red dog number 3", "the big bird number 12", "the red cat number 7"]
    results = load(tmp_path / "run", engine=engine, device="cpu", precision="float32").translate(texts, beam=3)
    assert [result.text for result in results] == [text for text, _ in EXPECTED]
    assert [result.score for result in results] == pytest.approx([score for _, score in EXPECTED], abs=1e-4)


def test_an_old_setting_name_is_refused_with_its_new_name() -> None:
    with pytest.raises(RegardError, match=r"training\.judge: this setting is now called training\.metric"):
        run_settings("bahdanau", {}, ["training.judge=chrf"], {})
    assert "metric" in read_toml(RUN / "settings.toml")["training"]


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_format_1_have_a_present_name(name: str) -> None:
    settings = ModelSettings.model_validate(renames.migrate({"model": MODELS[name]["model"]})["model"])
    source_vocabulary_size = 20 if settings.source.kind == "text" else 0
    model = Seq2Seq(settings, source_vocabulary_size=source_vocabulary_size, target_vocabulary_size=20)
    present = {name: list(tensor.shape) for name, tensor in [*model.named_parameters(), *model.named_buffers()]}
    migrated = {renames.new_tensor_name(name): shape for name, shape in MODELS[name]["tensors"].items()}
    assert migrated == present


@pytest.mark.parametrize("entry", renames.TENSORS)
def test_every_renamed_weight_is_tested(entry: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renames, "TENSORS", (entry,))
    names = [name for model in MODELS.values() for name in model["tensors"]]
    assert any(renames.new_tensor_name(name) != name for name in names)


def test_training_of_format_1_is_resumed_where_it_stopped(tmp_path: Path) -> None:
    """The weights after the last step are those of the version that wrote format 1."""
    run = tmp_path / "run"
    shutil.copytree(UNFINISHED, run)
    run_regard("train", "--resume", run, "--quiet")
    weights = read_weights(run / "checkpoints" / "00000020" / "weights.safetensors")
    expected = read_weights(UNFINISHED / "expected.safetensors")
    assert weights.keys() == expected.keys()
    for name, tensor in expected.items():
        if not name.endswith("key.bias"):  # softmax does not depend on it: its gradient is rounding error
            torch.testing.assert_close(weights[name], tensor, rtol=1e-3, atol=1e-4, msg=name)
    log = read_log(run / "log.jsonl")
    validations = [line for line in log if line["kind"] == "validation"]
    assert [line["step"] for line in validations] == [5, 10, 15, 20]
    assert {line["metric"] for line in validations} == {"chrf"}
