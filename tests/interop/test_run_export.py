"""Runs in other projects' formats: imports are exported bit by bit, and other runtimes give the same output."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from regard.interop.run_export import export_run
from regard.loading import load
from tests.interop.huggingface_models import LINES

KINDS = [
    "bert BertForPreTraining",
    "bert BertForSequenceClassification",
    "roberta RobertaForMaskedLM",
    "distilbert DistilBertForMaskedLM",
    "gpt2 GPT2LMHeadModel",
    "gpt_neox GPTNeoXForCausalLM",
    "marian MarianMTModel",
    "pegasus PegasusForConditionalGeneration",
]


@pytest.mark.parametrize("kind", KINDS)
def test_an_imported_model_is_exported_unchanged(imported: Any, kind: str, tmp_path: Path) -> None:
    _, _, theirs, run = imported(kind)
    export_run(run, "huggingface", tmp_path / "back")
    before, after = (load_file(each / "model.safetensors") for each in (theirs, tmp_path / "back"))
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]), name
    for path in theirs.iterdir():
        if path.name != "model.safetensors":
            assert path.read_bytes() == (tmp_path / "back" / path.name).read_bytes()


def test_ctranslate2_runs_an_exported_model(imported: Any, tmp_path: Path) -> None:
    import ctranslate2

    run = imported("marian MarianMTModel").run
    export_run(run, "ctranslate2", tmp_path / "folder")
    model = load(run, engine="torch")
    results = model.translate(LINES, beam=4)
    translator = ctranslate2.Translator(str(tmp_path / "folder"))
    pieces = [model.run.source_processor.pieces(result.source_tokens) for result in results]
    found = translator.translate_batch(pieces, beam_size=4, length_penalty=1.0, min_decoding_length=0)
    ended = 0
    for each, result in zip(found, results, strict=True):
        if len(result.tokens) < 40:
            assert each.hypotheses[0] == model.run.target_vocabulary.pieces(result.tokens[:-1])
            ended += 1
    assert ended


def test_exported_safetensors_can_be_loaded_as_a_run(imported: Any, tmp_path: Path) -> None:
    run = imported("marian MarianMTModel").run
    export_run(run, "safetensors", tmp_path / "folder")
    assert load(tmp_path / "folder").translate(LINES[0]).text == load(run).translate(LINES[0]).text


def test_impossible_exports_are_rejected(imported: Any, tmp_path: Path) -> None:
    run = imported("bert BertForPreTraining").run
    with pytest.raises(ValueError, match="does not predict one token after the other"):
        export_run(run, "ctranslate2", tmp_path / "a")
    with pytest.raises(ValueError, match="there is no 'tensorflow'"):
        export_run(run, "tensorflow", tmp_path / "a")
    assert not (tmp_path / "a").exists()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "file").touch()
    with pytest.raises(ValueError, match="it exists"):
        export_run(run, "onnx", tmp_path / "b")
