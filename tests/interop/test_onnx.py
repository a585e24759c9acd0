"""ONNX: onnxruntime gives the logits and the tokens that PyTorch gives."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.data.batch import pad_sequences
from regard.interop.run_export import export_run
from regard.loading import load
from regard.runs.bundle import load_bundle
from regard.special_tokens import BOS, EOS, MASK, PAD
from tests.interop.huggingface_models import LINES


def run_graph(path: Path, **inputs: Any) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)[0]


def test_a_translation_model_predicts_the_same_tokens(imported: Any, tmp_path: Path) -> None:
    run = imported("marian MarianMTModel").run
    export_run(run, "onnx", tmp_path / "onnx")
    model = load(run, engine="torch")
    results = model.translate(LINES, beam=1)
    tokens = pad_sequences([result.source_tokens for result in results])
    mask = (tokens != PAD).numpy()
    states = run_graph(tmp_path / "onnx" / "encoder.onnx", tokens=tokens.numpy(), mask=mask)
    tokens_so_far = np.full((len(tokens), 1), BOS)
    for _ in range(max(len(result.tokens) for result in results)):
        logits = run_graph(tmp_path / "onnx" / "decoder.onnx", tokens=tokens_so_far, states=states, mask=mask)
        logits[:, [PAD, BOS]] = -np.inf
        tokens_so_far = np.concatenate([tokens_so_far, logits.argmax(-1)[:, None]], 1)
    for row, result in zip(tokens_so_far[:, 1:].tolist(), results, strict=True):
        if len(result.tokens) < 40:  # it ended before the limit
            assert row[: len(result.tokens)] == result.tokens


def test_an_encoder_gives_the_same_logits(imported: Any, tmp_path: Path) -> None:
    for kind in ("bert BertForPreTraining", "bert BertForSequenceClassification"):
        run = imported(kind).run
        export_run(run, "onnx", tmp_path / kind)
        bundle = load_bundle(run)
        tokens = pad_sequences([[BOS, *each, EOS] for each in bundle.source_processor.encode(LINES)])
        tokens[:, 2] = MASK
        mask = tokens != PAD
        with torch.no_grad():
            memory = bundle.model.encode(tokens, mask)
            expected = bundle.model.logits(bundle.model.decoder(tokens, memory).features)
        found = run_graph(tmp_path / kind / "model.onnx", tokens=tokens.numpy(), mask=mask.numpy())
        if bundle.description.model.decoder.predicts == "classes":
            np.testing.assert_allclose(found[:, EOS + 1 :], expected[:, 0, EOS + 1 :].numpy(), atol=1e-4)
        else:
            np.testing.assert_allclose(found[mask.numpy()], expected[mask].numpy(), atol=1e-4)


def test_a_language_model_generates_the_same_tokens(imported: Any, tmp_path: Path) -> None:
    run = imported("gpt2 GPT2LMHeadModel").run
    export_run(run, "onnx", tmp_path / "onnx")
    result = load(run).translate("A dog runs", beam=1, max_tokens=10)
    tokens_so_far = np.array([load(run).run.target_vocabulary.encode(["A dog runs"])[0]])
    prefix_length = tokens_so_far.shape[1]
    for _ in range(10):
        logits = run_graph(tmp_path / "onnx" / "decoder.onnx", tokens=tokens_so_far)
        logits[:, [PAD, BOS]] = -np.inf
        tokens_so_far = np.concatenate([tokens_so_far, logits.argmax(-1)[:, None]], 1)
    predicted = tokens_so_far[0, prefix_length:].tolist()
    predicted = predicted[: predicted.index(EOS)] if EOS in predicted else predicted
    assert result.tokens[prefix_length : prefix_length + len(predicted)] == predicted
