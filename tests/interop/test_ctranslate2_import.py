"""Importing CTranslate2 folders: exported models are restored, and damaged files are rejected."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.data.settings import SubwordSettings
from regard.data.tokenizers.sentencepiece_tokenizer import train_tokenizer
from regard.errors import RegardError
from regard.interop.folder_import import import_folder
from regard.interop.run_export import export_run
from regard.loading import load
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle, module_tensors, new_model, save_bundle
from regard.runs.folder import RunDescription
from tests.interop.huggingface_models import LINES


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_an_exported_model_can_be_imported_again(imported: Any, tmp_path: Path, precision: str) -> None:
    run = imported("marian MarianMTModel").run
    export_run(run, "ctranslate2", tmp_path / "folder", precision=precision)
    import_folder(tmp_path / "folder", tmp_path / "again")
    first, second = load(run, engine="torch"), load(tmp_path / "again", engine="torch")
    if precision == "float32":
        for line in LINES:
            a, b = first.translate(line, beam=4), second.translate(line, beam=4)
            assert a.text == b.text
            assert a.score == pytest.approx(b.score, abs=1e-5)
        before, after = (module_tensors(each.run.bundle.model) for each in (first, second))
        for name in before:
            if name != "output.bias" and "position" not in name:
                assert torch.equal(before[name].sort(0).values, after[name].sort(0).values)
    else:
        before, after = (module_tensors(each.run.bundle.model) for each in (first, second))
        for name, tensor in before.items():
            if name.startswith("encoder.layers") and name.endswith("weight") and tensor.ndim == 2:
                rows = tensor.abs().amax(1, keepdim=True)
                assert bool(((tensor - after[name]).abs() <= rows / 254 * 1.01).all())


@pytest.mark.parametrize("tie", ["all", "target", "none"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"norm_first": False, "activation": "gelu"},
        {"norm": "rms", "activation": "swiglu"},
        {"position": "learned", "max_positions": 128, "scale_embedding": False},
    ],
)
def test_exported_transformers_of_every_kind_can_be_imported_again(
    tmp_path: Path, tie: str, settings: dict[str, Any]
) -> None:
    run = random_run(tmp_path, tie, settings)
    export_run(run, "ctranslate2", tmp_path / "folder")
    import_folder(tmp_path / "folder", tmp_path / "again")
    first, second = load(run, engine="torch"), load(tmp_path / "again", engine="torch")
    for line in LINES[:1]:
        results = [each.translate(line, beam=1, max_length_ratio=40) for each in (first, second)]
        pieces = [
            each.run.target_vocabulary.pieces(result.tokens[:40])
            for each, result in zip((first, second), results, strict=True)
        ]
        assert pieces[0] == pieces[1]
        scored = [
            each.translate(line, beam=1, max_length_ratio=8, prefix="Ein", scores=True) for each in (first, second)
        ]
        assert scored[0].token_scores[:3] == pytest.approx(scored[1].token_scores[:3], abs=1e-4)


def random_run(tmp_path: Path, tie: str, settings: dict[str, Any]) -> Path:
    """A Transformer with random weights and a vocabulary of its own."""
    stack = {"kind": "transformer", "width": 16, "heads": 2, "layers": 2, "feedforward": 24, **settings}
    model = ModelSettings.parse({"encoder": stack, "decoder": stack, "tie": tie})
    joint = train_tokenizer(LINES * 3, SubwordSettings(), 330)
    source = joint if tie == "all" else train_tokenizer(LINES[:3] * 3, SubwordSettings(), 310)
    torch.manual_seed(3)
    network = new_model(model, source, joint).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    (tmp_path / "run").mkdir()
    save_bundle(tmp_path / "run", Bundle(RunDescription(max_tokens=100, model=model), network, source, joint))
    return tmp_path / "run"


def test_damaged_folders_are_rejected(imported: Any, tmp_path: Path) -> None:
    run = imported("marian MarianMTModel").run
    exported = tmp_path / "folder"
    export_run(run, "ctranslate2", exported)
    content = (exported / "model.bin").read_bytes()

    def model(changed: bytes) -> Any:
        return lambda folder: (folder / "model.bin").write_bytes(changed)

    tensor_name = b"layer_1/ffn/linear_0/bias"
    cases = [
        (model(content[: len(content) // 2]), "damaged"),
        (model(b"\x09" + content[1:]), "format 9"),
        (model(content.replace(b"TransformerSpec", b"WhisperSpec1234")), "WhisperSpec"),
        (model(content.replace(tensor_name, b"layer_1/ffn/linear_0/bios")), "linear_0/bias is missing"),
        (lambda folder: (folder / "source.spm").unlink(), "source.spm"),
        (lambda folder: (folder / "shared_vocabulary.json").unlink(), "vocabulary"),
        (lambda folder: (folder / "shared_vocabulary.json").write_text('["a", "b"]'), "<unk>"),
        (lambda folder: (folder / "config.json").write_text("[]"), "JSON object"),
    ]
    for number, (change, message) in enumerate(cases):
        copy = tmp_path / f"damaged{number}"
        shutil.copytree(exported, copy)
        change(copy)
        with pytest.raises(RegardError, match=message):
            import_folder(copy, tmp_path / "x")
        assert not (tmp_path / "x").exists()


def test_a_model_from_ctranslate2_s_own_converter_translates_alike(imported: Any, tmp_path: Path) -> None:
    from ctranslate2.converters import TransformersConverter

    theirs = tmp_path / "theirs"
    shutil.copytree(imported("marian MarianMTModel").theirs, theirs)
    tensors = load_file(theirs / "model.safetensors")
    # A target begins with padding, whose embedding is zero in trained models.
    tensors["model.shared.weight"][-1] = 0
    save_file(tensors, theirs / "model.safetensors", {"format": "pt"})
    import_folder(theirs, tmp_path / "first")
    converter = TransformersConverter(str(theirs), copy_files=["source.spm", "target.spm"])
    converter.convert(str(tmp_path / "folder"))
    import_folder(tmp_path / "folder", tmp_path / "second")
    first, second = (load(tmp_path / name, engine="torch") for name in ("first", "second"))
    for line in LINES:
        a, b = (each.translate(line, beam=4) for each in (first, second))
        assert a.text == b.text
        assert a.score == pytest.approx(b.score, abs=1e-5)
