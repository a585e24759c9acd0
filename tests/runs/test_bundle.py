"""Saving and loading runs: a loaded run equals the saved one, and damaged ones are refused in one sentence."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.runs.bundle import (
    Bundle,
    copy_tensors_into,
    load_bundle,
    module_tensors,
    read_tensors,
    save_bundle,
    serialize_tensors,
)
from regard.runs.folder import write_durably
from tests.bundles import random_bundle
from tests.models.variants import random_batch

SENTENCE = re.compile(r"^\S[^\n]*[.?]$|^\S[^\n]*\)\.$")


def load_error(folder: Path) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        load_bundle(folder)
    message = str(caught.value)
    assert SENTENCE.match(message), message
    assert len(message) < 600
    return message


@pytest.fixture
def saved_run(bundle: Bundle, tmp_path: Path) -> Path:
    save_bundle(tmp_path, bundle)
    return tmp_path


@pytest.mark.parametrize("decoder", ["cho", "luong input feeding", "before local-p", "convolutional", "shaw", "t5"])
@pytest.mark.parametrize("tie", ["none", "target"])
def test_a_loaded_model_equals_the_saved_one(
    subwords: SubwordTokenizer, tmp_path: Path, decoder: str, tie: str
) -> None:
    saved = random_bundle(
        subwords, "recurrent", decoder, tie=tie, source_language="en", lowercase=True, tokens_per_source_token=1.5
    )
    save_bundle(tmp_path, saved)
    loaded = load_bundle(tmp_path)
    assert loaded.description == saved.description
    assert not loaded.model.training
    inputs = random_batch([6, 3], [5, 2])
    with torch.no_grad():
        assert torch.equal(loaded.model(*inputs).features, saved.model(*inputs).features)
    assert loaded.model.size == saved.model.size
    if tie == "target":
        assert loaded.model.output.weight is loaded.model.decoder.embedding.weight
    assert loaded.source_processor.encode(["the cat"]) == subwords.encode(["the cat"])


def test_given_tensors_are_saved_instead_of_the_models_own(bundle: Bundle, tmp_path: Path) -> None:
    doubled = {name: 2 * value for name, value in module_tensors(bundle.model).items()}
    save_bundle(tmp_path, bundle, doubled)
    for name, value in module_tensors(load_bundle(tmp_path).model).items():
        assert torch.equal(value, doubled[name])


def test_a_run_consists_of_safetensors_toml_and_subword_files(saved_run: Path) -> None:
    names = sorted(path.name for path in saved_run.iterdir())
    assert names == ["model.safetensors", "model.toml", "source.subwords", "target.subwords"]
    assert 'attend = "before"' in (saved_run / "model.toml").read_text()


def test_loading_leaves_the_global_random_state_unchanged(saved_run: Path) -> None:
    before = torch.get_rng_state()
    load_bundle(saved_run)
    assert torch.equal(torch.get_rng_state(), before)


def change_tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], object]:
    def damage(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors")

    return damage


def replace_content(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def replace_text(old: str, new: str) -> Callable[[Path], object]:
    def damage(folder: Path) -> None:
        text = (folder / "model.toml").read_text()
        assert old in text
        (folder / "model.toml").write_text(text.replace(old, new, 1))

    return damage


def replace_by_folder(name: str) -> Callable[[Path], object]:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return damage


def truncate(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-100])


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "tensor missing": (
        change_tensors(lambda t: t.pop("decoder.initial_state.weight")),
        "tensor decoder.initial_state.weight is missing",
    ),
    "tensor too many": (
        change_tensors(lambda t: t.update(extra=torch.ones(2))),
        "tensor extra does not belong to this model",
    ),
    "tensor of another shape": (
        change_tensors(lambda t: t.update({"output.bias": torch.ones(3)})),
        "tensor output.bias is (3,), the model has",
    ),
    "weights cut short": (truncate("model.safetensors"), "it is damaged and cannot be read"),
    "weights not safetensors": (replace_content("model.safetensors", b"PK\x03\x04 nonsense"), "it is damaged"),
    "weights empty": (replace_content("model.safetensors", b""), "it is damaged"),
    "weights gone": (lambda folder: (folder / "model.safetensors").unlink(), "there is no such file"),
    "weights a folder": (
        replace_by_folder("model.safetensors"),
        "it is damaged",
    ),
    "description not TOML": (replace_content("model.toml", b"= = ="), "this is not TOML"),
    "description not text": (replace_content("model.toml", b"\xff\xfe\x00"), "not a text file in UTF-8"),
    "description empty": (replace_content("model.toml", b""), "model: it is missing"),
    "description of another format": (replace_text("format = 3", "format = 4"), "format: 4 is not possible"),
    "description with an unknown name": (replace_text("lowercase", "lowercased"), "did you mean lowercase?"),
    "description of another model": (replace_text("width = 12", "width = 16"), "the model has"),
    "subwords cut short": (truncate("source.subwords"), "the subword model is damaged"),
    "subwords not subwords": (replace_content("target.subwords", b"nonsense"), "the subword model is damaged"),
    "subwords empty": (replace_content("target.subwords", b""), "subword model"),
    "subwords gone": (lambda folder: (folder / "source.subwords").unlink(), "there is no such file"),
    "subwords a folder": (
        replace_by_folder("source.subwords"),
        "source.subwords",
    ),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_run_is_refused_in_one_sentence_that_names_the_file(saved_run: Path, kind: str) -> None:
    damage, expected = DAMAGES[kind]
    damage(saved_run)
    message = load_error(saved_run)
    assert expected in message
    assert str(saved_run) in message, "the file is named"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    name=st.sampled_from(["model.safetensors", "model.toml", "source.subwords"]),
    where=st.floats(0, 1, exclude_max=True),
    byte=st.integers(0, 255),
)
def test_a_changed_byte_raises_no_other_exception_than_a_value_error(
    saved_run: Path, tmp_path_factory: pytest.TempPathFactory, name: str, where: float, byte: int
) -> None:
    folder = tmp_path_factory.mktemp("damaged") / "run"
    shutil.copytree(saved_run, folder)
    content = bytearray((folder / name).read_bytes())
    content[int(where * len(content))] = byte
    (folder / name).write_bytes(content)
    try:
        load_bundle(folder)
    except ValueError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([], "this is not a run; a run has a model.toml"),
        (["settings.toml"], "this run has no model yet; train on with regard train --resume"),
        (None, "there is no such folder"),
    ],
)
def test_a_folder_that_is_not_a_run_is_refused(tmp_path: Path, files: list[str] | None, expected: str) -> None:
    folder = tmp_path / "run"
    if files is not None:
        folder.mkdir()
        for name in files:
            (folder / name).touch()
    message = load_error(folder)
    assert expected in message
    assert str(folder) in message


def test_a_file_is_refused_as_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "there is no such folder" in load_error(tmp_path / "file")


def test_copying_tensors_names_the_tensor_that_does_not_match() -> None:
    module = torch.nn.Linear(2, 3)
    valid = {"weight": torch.ones(3, 2), "bias": torch.zeros(3)}
    copy_tensors_into(module, valid, "here")
    assert torch.equal(module(torch.ones(1, 2)), torch.full((1, 3), 2.0))
    for invalid, message in (
        ({"weight": valid["weight"]}, "here: tensor bias is missing."),
        ({**valid, "more": valid["bias"]}, "here: tensor more does not belong to this model."),
        ({**valid, "bias": torch.zeros(2)}, r"here: tensor bias is \(2,\), the model has \(3,\)\."),
    ):
        with pytest.raises(ValueError, match=f"^{message}$"):
            copy_tensors_into(module, invalid, "here")


def test_serialized_tensors_are_read_back_equal(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(3, 4).t(), "b": torch.tensor([1, 2]), "c": torch.randn(2).bfloat16()}
    write_durably(tmp_path / "file", serialize_tensors(tensors))
    for name, value in read_tensors(tmp_path / "file").items():
        assert torch.equal(value, tensors[name])
        assert value.dtype == tensors[name].dtype
