"""Importing Hugging Face folders: unsupported ones are rejected with one sentence, and no files are left behind."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from regard.errors import RegardError
from regard.interop.folder_import import import_folder
from tests.interop.conftest import Imported

Change = Callable[[Path], object]


def changed_copy(theirs: Path, tmp_path: Path, change: Change) -> Path:
    """A copy of a Hugging Face folder with a change."""
    copy = tmp_path / "changed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(theirs, copy)
    change(copy)
    return copy


def change_weights(change: Callable[[dict[str, Tensor]], object]) -> Change:
    def apply(copy: Path) -> None:
        tensors = load_file(copy / "model.safetensors")
        change(tensors)
        save_file(tensors, copy / "model.safetensors")

    return apply


def change_config(**values: Any) -> Change:
    def apply(copy: Path) -> None:
        content = json.loads((copy / "config.json").read_text())
        (copy / "config.json").write_text(json.dumps(content | values))

    return apply


def write_vocabulary(content: str) -> Change:
    return lambda copy: (copy / "vocab.json").write_text(content)


def test_unsupported_folders_are_rejected_with_the_reason(imported: Any, tmp_path: Path) -> None:
    theirs = imported("bert BertForPreTraining").theirs
    name = "bert.encoder.layer.1.output.dense.bias"
    cases: list[tuple[Change, str]] = [
        (change_weights(lambda t: t.pop(name)), f"tensor {name} is missing"),
        (change_weights(lambda t: t.update({"bert.extra": torch.ones(2)})), "tensor bert.extra does not belong to"),
        (change_weights(lambda t: t.update({name: torch.ones(7)})), r"\(7,\)"),
        (change_config(model_type="albert"), "model_type 'albert' is not known"),
        (change_config(position_embedding_type="relative_key"), "position_embedding_type"),
        (change_config(hidden_act="mish"), "mish"),
        (
            lambda copy: (copy / "model.safetensors").rename(copy / "pytorch_model.bin"),
            "can run anything",
        ),
        (lambda copy: (copy / "config.json").unlink(), "no config.json"),
        (lambda copy: (copy / "tokenizer.json").unlink(), "no vocabulary"),
        (lambda copy: (copy / "tokenizer.json").write_text("{}"), "kind None"),
        (lambda copy: (copy / "model.safetensors").write_bytes(b"x" * 99), "damaged"),
    ]
    for change, message in cases:
        with pytest.raises(RegardError, match=message):
            import_folder(changed_copy(theirs, tmp_path, change), tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_an_index_cannot_name_files_elsewhere(imported: Any, tmp_path: Path) -> None:
    theirs = imported("bert BertForPreTraining").theirs

    def use_index(copy: Path) -> None:
        (copy / "model.safetensors").rename(copy / "part.safetensors")
        names = dict.fromkeys(load_file(copy / "part.safetensors"), "part.safetensors")
        (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))

    import_folder(changed_copy(theirs, tmp_path, use_index), tmp_path / "run")

    def point_outside(copy: Path) -> None:
        use_index(copy)
        (copy / "part.safetensors").rename(tmp_path / "part.safetensors")
        index = copy / "model.safetensors.index.json"
        index.write_text(index.read_text().replace("part.safetensors", "../part.safetensors"))

    with pytest.raises(RegardError, match="is no safetensors file of this folder"):
        import_folder(changed_copy(theirs, tmp_path, point_outside), tmp_path / "other")


def test_malicious_files_are_rejected(imported: Any, tmp_path: Path) -> None:
    bert, marian = imported("bert BertForSequenceClassification"), imported("marian MarianMTModel")
    cases: list[tuple[Imported, Change, str]] = [
        (bert, change_config(num_hidden_layers=10**9), "num_hidden_layers"),
        (bert, change_config(hidden_size=10**9), "hidden_size"),
        (bert, change_config(hidden_size=4096, intermediate_size=10**5, num_hidden_layers=2), "tensor"),
        (bert, change_config(vocab_size=100_000), r"vocab_size\) 100,000"),
        (bert, change_config(hidden_act=[1]), "activation"),
        (bert, change_config(model_type=["bert"]), "model_type"),
        (bert, change_config(id2label=[1, 2]), "id2label"),
        (bert, change_config(id2label={"0": "a\nb", "1": "c"}), "id2label"),
        (marian, change_config(encoder_layers=10**7), "encoder_layers"),
        (marian, change_config(max_position_embeddings=1 << 20, d_model=1 << 16), "max_position_embeddings"),
        (marian, change_config(pad_token_id=10**7), "no vocabulary"),
        (marian, lambda copy: (copy / "target.spm").write_bytes(b""), "empty"),
        (marian, write_vocabulary("[]"), "vocab.json"),
    ]
    for model, change, message in cases:
        with pytest.raises(RegardError, match=message):
            import_folder(changed_copy(model.theirs, tmp_path, change), tmp_path / "run")
    gpt = imported("gpt2 GPT2LMHeadModel")
    for content in ("[]", '{"a": "b"}'):
        with pytest.raises(RegardError, match="vocabulary"):
            import_folder(changed_copy(gpt.theirs, tmp_path, write_vocabulary(content)), tmp_path / "run")
