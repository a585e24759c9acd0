"""Importing folders of Hugging Face's: what does not fit is refused in one sentence, and leaves nothing behind."""

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
    """A copy of a folder of Hugging Face's, with something in it changed."""
    copy = tmp_path / "changed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(theirs, copy)
    change(copy)
    return copy


def weights(change: Callable[[dict[str, Tensor]], object]) -> Change:
    def apply(copy: Path) -> None:
        tensors = load_file(copy / "model.safetensors")
        change(tensors)
        save_file(tensors, copy / "model.safetensors")

    return apply


def config(**values: Any) -> Change:
    def apply(copy: Path) -> None:
        content = json.loads((copy / "config.json").read_text())
        (copy / "config.json").write_text(json.dumps(content | values))

    return apply


def vocabulary(content: str) -> Change:
    return lambda copy: (copy / "vocab.json").write_text(content)


def test_what_does_not_fit_is_named(imported: Any, tmp_path: Path) -> None:
    theirs = imported("bert BertForPreTraining").theirs
    name = "bert.encoder.layer.1.output.dense.bias"
    cases: list[tuple[Change, str]] = [
        (weights(lambda t: t.pop(name)), f"tensor {name} is missing"),
        (weights(lambda t: t.update({"bert.extra": torch.ones(2)})), "tensor bert.extra has no place"),
        (weights(lambda t: t.update({name: torch.ones(7)})), r"\(7,\)"),
        (config(model_type="albert"), "model_type 'albert' is not known"),
        (config(position_embedding_type="relative_key"), "position_embedding_type"),
        (config(hidden_act="mish"), "mish"),
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

    def several(copy: Path) -> None:
        (copy / "model.safetensors").rename(copy / "part.safetensors")
        names = dict.fromkeys(load_file(copy / "part.safetensors"), "part.safetensors")
        (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))

    import_folder(changed_copy(theirs, tmp_path, several), tmp_path / "run")

    def elsewhere(copy: Path) -> None:
        several(copy)
        (copy / "part.safetensors").rename(tmp_path / "part.safetensors")
        index = copy / "model.safetensors.index.json"
        index.write_text(index.read_text().replace("part.safetensors", "../part.safetensors"))

    with pytest.raises(RegardError, match="is no safetensors file of this folder"):
        import_folder(changed_copy(theirs, tmp_path, elsewhere), tmp_path / "other")


def test_hostile_files_are_refused_at_once(imported: Any, tmp_path: Path) -> None:
    bert, marian = imported("bert BertForSequenceClassification"), imported("marian MarianMTModel")
    cases: list[tuple[Imported, Change, str]] = [
        (bert, config(num_hidden_layers=10**9), "num_hidden_layers"),
        (bert, config(hidden_size=10**9), "hidden_size"),
        (bert, config(hidden_size=4096, intermediate_size=10**5, num_hidden_layers=2), "tensor"),
        (bert, config(vocab_size=100_000), r"vocab_size\) 100,000"),
        (bert, config(hidden_act=[1]), "activation"),
        (bert, config(model_type=["bert"]), "model_type"),
        (bert, config(id2label=[1, 2]), "id2label"),
        (bert, config(id2label={"0": "a\nb", "1": "c"}), "id2label"),
        (marian, config(encoder_layers=10**7), "encoder_layers"),
        (marian, config(max_position_embeddings=1 << 20, d_model=1 << 16), "max_position_embeddings"),
        (marian, config(pad_token_id=10**7), "no vocabulary"),
        (marian, lambda copy: (copy / "target.spm").write_bytes(b""), "empty"),
        (marian, vocabulary("[]"), "vocab.json"),
    ]
    for model, change, message in cases:
        with pytest.raises(RegardError, match=message):
            import_folder(changed_copy(model.theirs, tmp_path, change), tmp_path / "run")
    gpt = imported("gpt2 GPT2LMHeadModel")
    for content in ("[]", '{"a": "b"}'):
        with pytest.raises(RegardError, match="vocabulary"):
            import_folder(changed_copy(gpt.theirs, tmp_path, vocabulary(content)), tmp_path / "run")
