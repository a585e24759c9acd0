"""A trained model as a folder: what was saved comes back, what is damaged is refused in one sentence."""

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
    as_bytes,
    load_bundle,
    put_tensors,
    read_tensors,
    save_bundle,
    tensors_of,
)
from regard.runs.folder import write_durably
from tests.bundles import bundle_of
from tests.models.variants import batch

SENTENCE = re.compile(r"^\S[^\n]*[.?]$|^\S[^\n]*\)\.$")


def refusal(folder: Path) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        load_bundle(folder)
    said = str(caught.value)
    assert SENTENCE.match(said), said
    assert len(said) < 600
    return said


@pytest.fixture
def saved(bundle: Bundle, tmp_path: Path) -> Path:
    save_bundle(tmp_path, bundle)
    return tmp_path


@pytest.mark.parametrize("decoder", ["cho", "luong fed", "before local-p", "convolutional", "shaw", "t5"])
@pytest.mark.parametrize("tie", ["none", "target"])
def test_what_was_saved_comes_back(subwords: SubwordTokenizer, tmp_path: Path, decoder: str, tie: str) -> None:
    given_ = bundle_of(subwords, "recurrent", decoder, tie=tie, source_language="en", lowercase=True, per_token=1.5)
    save_bundle(tmp_path, given_)
    loaded = load_bundle(tmp_path)
    assert loaded.description == given_.description
    assert not loaded.model.training
    inputs = batch([6, 3], [5, 2])
    with torch.no_grad():
        assert torch.equal(loaded.model(*inputs).features, given_.model(*inputs).features)
    assert loaded.model.size == given_.model.size
    if tie == "target":
        assert loaded.model.output.weight is loaded.model.decoder.embedding.weight
    assert loaded.source_side.encode(["the cat"]) == subwords.encode(["the cat"])


def test_other_tensors_can_take_the_models_place(bundle: Bundle, tmp_path: Path) -> None:
    doubled = {name: 2 * value for name, value in tensors_of(bundle.model).items()}
    save_bundle(tmp_path, bundle, doubled)
    for name, value in tensors_of(load_bundle(tmp_path).model).items():
        assert torch.equal(value, doubled[name])


def test_a_run_is_files_that_a_person_can_read(saved: Path) -> None:
    names = sorted(path.name for path in saved.iterdir())
    assert names == ["model.safetensors", "model.toml", "source.subwords", "target.subwords"]
    assert 'attend = "before"' in (saved / "model.toml").read_text()


def test_loading_moves_nobodys_dice(saved: Path) -> None:
    before = torch.get_rng_state()
    load_bundle(saved)
    assert torch.equal(torch.get_rng_state(), before)


def change_tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors")

    return spoil


def rewrite(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def replace_text(old: str, new: str) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        text = (folder / "model.toml").read_text()
        assert old in text
        (folder / "model.toml").write_text(text.replace(old, new, 1))

    return spoil


def made_a_folder(name: str) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return spoil


def cut(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-100])


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "tensor missing": (
        change_tensors(lambda t: t.pop("decoder.first.weight")),
        "tensor decoder.first.weight is missing",
    ),
    "tensor too many": (
        change_tensors(lambda t: t.update(extra=torch.ones(2))),
        "tensor extra has no place in this model",
    ),
    "tensor of another shape": (
        change_tensors(lambda t: t.update({"output.bias": torch.ones(3)})),
        "tensor output.bias is (3,), the model has",
    ),
    "weights cut short": (cut("model.safetensors"), "it is damaged and cannot be read"),
    "weights not safetensors": (rewrite("model.safetensors", b"PK\x03\x04 nonsense"), "it is damaged"),
    "weights empty": (rewrite("model.safetensors", b""), "it is damaged"),
    "weights gone": (lambda folder: (folder / "model.safetensors").unlink(), "there is no such file"),
    "weights a folder": (
        made_a_folder("model.safetensors"),
        "it is damaged",
    ),
    "description not TOML": (rewrite("model.toml", b"= = ="), "this is not TOML"),
    "description not text": (rewrite("model.toml", b"\xff\xfe\x00"), "not a text file in UTF-8"),
    "description empty": (rewrite("model.toml", b""), "model: it is missing"),
    "description of another format": (replace_text("format = 2", "format = 3"), "format: 3 is not possible"),
    "description with an unknown name": (replace_text("lowercase", "lowercased"), "did you mean lowercase?"),
    "description of another model": (replace_text("width = 12", "width = 16"), "the model has"),
    "subwords cut short": (cut("source.subwords"), "the subword model is damaged"),
    "subwords not subwords": (rewrite("target.subwords", b"nonsense"), "the subword model is damaged"),
    "subwords empty": (rewrite("target.subwords", b""), "subword model"),
    "subwords gone": (lambda folder: (folder / "source.subwords").unlink(), "there is no such file"),
    "subwords a folder": (
        made_a_folder("source.subwords"),
        "source.subwords",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_damaged_is_refused_in_one_sentence_that_names_the_file(saved: Path, kind: str) -> None:
    spoil, said = DAMAGE[kind]
    spoil(saved)
    message = refusal(saved)
    assert said in message
    assert str(saved) in message, "the file is named"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    name=st.sampled_from(["model.safetensors", "model.toml", "source.subwords"]),
    where=st.floats(0, 1, exclude_max=True),
    byte=st.integers(0, 255),
)
def test_one_wrong_byte_is_refused_or_harmless_but_never_a_crash(
    saved: Path, tmp_path_factory: pytest.TempPathFactory, name: str, where: float, byte: int
) -> None:
    folder = tmp_path_factory.mktemp("damaged") / "run"
    shutil.copytree(saved, folder)
    content = bytearray((folder / name).read_bytes())
    content[int(where * len(content))] = byte
    (folder / name).write_bytes(content)
    try:
        load_bundle(folder)
    except ValueError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ([], "this is not a run; a run has a model.toml"),
        (["settings.toml"], "this run has no model yet; train on with regard train --resume"),
        (None, "there is no such folder"),
    ],
)
def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, made: list[str] | None, said: str) -> None:
    folder = tmp_path / "run"
    if made is not None:
        folder.mkdir()
        for name in made:
            (folder / name).touch()
    message = refusal(folder)
    assert said in message
    assert str(folder) in message


def test_a_file_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "there is no such folder" in refusal(tmp_path / "file")


def test_putting_tensors_names_what_does_not_fit() -> None:
    module = torch.nn.Linear(2, 3)
    good = {"weight": torch.ones(3, 2), "bias": torch.zeros(3)}
    put_tensors(module, good, "here")
    assert torch.equal(module(torch.ones(1, 2)), torch.full((1, 3), 2.0))
    for bad, said in (
        ({"weight": good["weight"]}, "here: tensor bias is missing."),
        ({**good, "more": good["bias"]}, "here: tensor more has no place in this model."),
        ({**good, "bias": torch.zeros(2)}, r"here: tensor bias is \(2,\), the model has \(3,\)\."),
    ):
        with pytest.raises(ValueError, match=f"^{said}$"):
            put_tensors(module, bad, "here")


def test_tensors_survive_bytes(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(3, 4).t(), "b": torch.tensor([1, 2]), "c": torch.randn(2).bfloat16()}
    write_durably(tmp_path / "file", as_bytes(tensors))
    for name, value in read_tensors(tmp_path / "file").items():
        assert torch.equal(value, tensors[name])
        assert value.dtype == tensors[name].dtype
