"""Runs trained with regard, exported in Hugging Face's format: transformers opens them and predicts the same."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.batch import pad_sequences
from regard.data.input_validation import normalize_whitespace
from regard.data.settings import SubwordSettings
from regard.data.tokenizers.sentencepiece_tokenizer import train_tokenizer
from regard.interop.folder_import import import_folder
from regard.interop.run_export import export_run
from regard.loading import load
from regard.models.settings import ModelSettings, NoSource
from regard.runs.bundle import Bundle, load_bundle, new_model, save_bundle
from regard.runs.folder import RunDescription
from regard.special_tokens import BOS, EOS, MASK, MASK_CHARACTER, PAD
from tests.interop.huggingface_models import HARD_TEXTS, LINES
from tests.interop.test_onnx import run_graph

transformers = pytest.importorskip("transformers")

TRANSFORMER = {"kind": "transformer", "width": 32, "heads": 4, "layers": 2, "feedforward": 48, "activation": "gelu"}
LEARNED_POSITIONS = {"position": "learned", "max_positions": 128}
BERT_SETTINGS = {**LEARNED_POSITIONS, "norm_first": False, "norm_embedding": True, "scale_embedding": False}
DECODER_ONLY = {"source": {"kind": "none"}, "encoder": {"kind": "none", "width": 32}, "tie": "target"}
MASKED_LM: dict[str, Any] = {
    "source": {"kind": "text", "bos": True},
    "decoder": {"kind": "masked-lm", "width": 32},
    "tie": "all",
    "output_bias": True,
}
MODELS: dict[str, dict[str, Any]] = {
    "PegasusForConditionalGeneration": {"encoder": TRANSFORMER, "decoder": {**TRANSFORMER, "layers": 1}, "tie": "all"},
    "PegasusForConditionalGeneration learned": {
        "encoder": {**TRANSFORMER, **LEARNED_POSITIONS, "activation": "relu"},
        "decoder": {**TRANSFORMER, **LEARNED_POSITIONS, "activation": "relu"},
        "tie": "all",
    },
    "MarianMTModel": {
        "encoder": {**TRANSFORMER, "norm_first": False},
        "decoder": {**TRANSFORMER, "norm_first": False},
        "tie": "all",
    },
    "GPTNeoXForCausalLM": {**DECODER_ONLY, "decoder": {**TRANSFORMER, "position": "rotary"}},
    "GPT2LMHeadModel": {**DECODER_ONLY, "decoder": {**TRANSFORMER, **LEARNED_POSITIONS}},
    "GPT2LMHeadModel tied": {**DECODER_ONLY, "decoder": {**TRANSFORMER, **LEARNED_POSITIONS, "scale_embedding": False}},
    "GPT2LMHeadModel sinusoidal": {**DECODER_ONLY, "decoder": TRANSFORMER},
    "EsmForMaskedLM": {**MASKED_LM, "encoder": {**TRANSFORMER, "position": "rotary"}},
    "BertForMaskedLM": {**MASKED_LM, "encoder": {**TRANSFORMER, **BERT_SETTINGS}},
}
TRANSLATORS = [name for name in MODELS if "Pegasus" in name or "Marian" in name]
DECODERS = [name for name in MODELS if "GPT" in name]
ENCODERS = [name for name in MODELS if "MaskedLM" in name]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folders: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in folders:
            folder = tmp_path_factory.mktemp("exported")
            model = ModelSettings.parse(MODELS[name])
            symbols = (MASK_CHARACTER,) if model.decoder.masked_lm else ()
            kind = "unigram" if "Marian" in name else "bpe"
            tokenizer = train_tokenizer(LINES * 3, SubwordSettings(kind=kind), 340, symbols)  # type: ignore[arg-type]
            torch.manual_seed(11)
            from regard.data.media.base import media_processor

            source_processor = media_processor(model.source) or tokenizer
            network = new_model(model, source_processor, tokenizer).eval()
            with torch.no_grad():
                for parameter in network.parameters():
                    parameter.add_(0.2 * torch.randn_like(parameter))
            per_token = 0.0 if isinstance(model.source, NoSource) else 2.0
            description = RunDescription(max_tokens=100, tokens_per_source_token=per_token, model=model)
            (folder / "run").mkdir()
            save_bundle(folder / "run", Bundle(description, network, source_processor, tokenizer))
            export_run(folder / "run", "huggingface", folder / "theirs")
            folders[name] = folder
        return folders[name]

    return get


def open_in_transformers(folder: Path, name: str) -> Any:
    kind = getattr(transformers, name.split(maxsplit=1)[0])
    model, report = kind.from_pretrained(folder / "theirs", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    return model.eval()


@pytest.mark.parametrize("name", MODELS)
def test_texts_are_tokenized_and_detokenized_identically(exported: Any, name: str) -> None:
    folder = exported(name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "theirs")
    bundle = load_bundle(folder / "run")
    ours = bundle.target_vocabulary.encode([normalize_whitespace(text) for text in HARD_TEXTS])
    bos = [BOS] if name not in TRANSLATORS else []
    end = [EOS] if name not in DECODERS else []
    for text, tokens in zip(HARD_TEXTS, ours, strict=True):
        assert tokenizer(text)["input_ids"] == [*bos, *tokens, *end]
        assert tokenizer.decode(tokens, skip_special_tokens=True) == bundle.target_vocabulary.decode([tokens])[0]


@pytest.mark.parametrize("name", TRANSLATORS)
def test_translation_models_predict_the_same(exported: Any, name: str) -> None:
    folder = exported(name)
    theirs, run = open_in_transformers(folder, name), load_bundle(folder / "run")
    source = pad_sequences([[*each[:60], EOS] for each in run.target_vocabulary.encode(LINES)])
    before = pad_sequences([[BOS, *each[:20]] for each in run.target_vocabulary.encode(LINES[::-1])])
    mask = source != PAD
    with torch.no_grad():
        expected = theirs(input_ids=source, attention_mask=mask.long(), decoder_input_ids=before).logits
        found = run.model.logits(run.model(source, mask, before).features)
    is_token = before != PAD
    torch.testing.assert_close(found[is_token][:, EOS:], expected[is_token][:, EOS:], rtol=1e-4, atol=1e-4)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "theirs")
    translator = load(folder / "run", engine="torch")
    for line in LINES[:3]:
        with torch.no_grad():
            generated = theirs.generate(
                **tokenizer(line, return_tensors="pt"), num_beams=1, do_sample=False, max_new_tokens=12
            )
        generated_here = translator.translate(line, beam=1, max_length_ratio=14).tokens[:12]
        assert generated[0, 1 : 1 + len(generated_here)].tolist() == generated_here


@pytest.mark.parametrize("name", DECODERS)
def test_language_models_have_the_same_logits(exported: Any, name: str) -> None:
    folder = exported(name)
    theirs, run = open_in_transformers(folder, name), load_bundle(folder / "run")
    no_source = torch.zeros(1, 0, dtype=torch.long)
    for line in LINES:
        tokens = torch.tensor([[BOS, *run.target_vocabulary.encode([line])[0][:60]]])
        with torch.no_grad():
            expected = theirs(input_ids=tokens).logits
            found = run.model.logits(run.model(no_source, no_source.bool(), tokens).features)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ENCODERS)
def test_masked_lms_have_the_same_logits(exported: Any, name: str) -> None:
    folder = exported(name)
    theirs, run = open_in_transformers(folder, name), load_bundle(folder / "run")
    rows = pad_sequences([[BOS, *each[:60], EOS] for each in run.target_vocabulary.encode(LINES)])
    rows[:, 3] = MASK
    mask = rows != PAD
    with torch.no_grad():
        expected = theirs(input_ids=rows, attention_mask=mask.long()).logits
        found = run.model.logits(run.model.decoder(rows, run.model.encode(rows, mask)).features)
    torch.testing.assert_close(found[mask], expected[mask], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_an_exported_model_can_be_imported_again(exported: Any, tmp_path: Path, name: str) -> None:
    folder = exported(name)
    import_folder(folder / "theirs", tmp_path / "again")
    first, second = load(folder / "run", engine="torch"), load(tmp_path / "again", engine="torch")
    for line in (line for line in LINES if " " in line):
        if name in ENCODERS:
            masked = line.replace(" ", " ___ ", 1)
            a, b = (each.fill(masked, nbest=1)[0][0] for each in (first, second))
            assert a.word == b.word
            assert a.probability == pytest.approx(b.probability, abs=1e-5)
        else:
            limit = {"max_tokens" if "length" in first.task.options else "max_length_ratio": 30}
            tokens = [each.translate(line, beam=1, **limit).tokens[:30] for each in (first, second)]
            assert tokens[0] == tokens[1]
    # A second export gives the same file.
    export_run(tmp_path / "again", "huggingface", tmp_path / "theirs")
    assert (tmp_path / "theirs" / "model.safetensors").read_bytes() == (
        folder / "theirs" / "model.safetensors"
    ).read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder": {**TRANSFORMER, "norm": "rms"}}, "norm is rms"),
        ({"encoder": {**TRANSFORMER, "activation": "swiglu"}}, "activation is swiglu"),
        ({"encoder": {"kind": "recurrent", "width": 32}}, "recurrent"),
        ({"tie": "target"}, "embeddings of their own"),
        (
            {"encoder": {**TRANSFORMER, "position": "rotary"}, "decoder": {**TRANSFORMER, "position": "rotary"}},
            "rotary",
        ),
        ({"encoder": {**TRANSFORMER, "position": "learned", "max_positions": 128}}, "the same position"),
        (
            {
                **MASKED_LM,
                "encoder": {**TRANSFORMER, **BERT_SETTINGS},
                "decoder": {**MASKED_LM["decoder"], "activation": "relu"},
            },
            "as bert, its head's activation is relu, not gelu; as esm, its position is learned, not rotary",
        ),
        (
            {**MASKED_LM, "encoder": {**TRANSFORMER, **BERT_SETTINGS, "norm_epsilon": 1e-12}},
            "as bert, its head's norm_epsilon is 1e-05, not 1e-12",
        ),
    ],
)
def test_models_without_a_matching_family_are_rejected(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    model = ModelSettings.parse({"encoder": TRANSFORMER, "decoder": TRANSFORMER, "tie": "all", **change})
    tokenizer = train_tokenizer(LINES * 3, SubwordSettings(), 340)
    save_bundle(
        tmp_path,
        Bundle(
            RunDescription(max_tokens=100, model=model), new_model(model, tokenizer, tokenizer), tokenizer, tokenizer
        ),
    )
    with pytest.raises(ValueError, match=message):
        export_run(tmp_path, "huggingface", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_tokenizer_lowercases_if_the_run_does(tmp_path: Path) -> None:
    model = ModelSettings.parse({"encoder": TRANSFORMER, "decoder": TRANSFORMER, "tie": "all"})
    tokenizer = train_tokenizer([line.lower() for line in LINES] * 3, SubwordSettings(), 340)
    description = RunDescription(max_tokens=100, lowercase=True, model=model)
    save_bundle(tmp_path, Bundle(description, new_model(model, tokenizer, tokenizer), tokenizer, tokenizer))
    export_run(tmp_path, "huggingface", tmp_path / "out")
    exported_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert exported_tokenizer("A DOG runs")["input_ids"] == [*tokenizer.encode(["a dog runs"])[0], EOS]
    assert json.loads((tmp_path / "out" / "config.json").read_text())["model_type"] == "pegasus"


@pytest.mark.parametrize("name", ["GPTNeoXForCausalLM", "EsmForMaskedLM", "PegasusForConditionalGeneration"])
def test_onnx_gives_the_same_numbers(exported: Any, tmp_path: Path, name: str) -> None:
    run = exported(name) / "run"
    export_run(run, "onnx", tmp_path / "onnx")
    bundle = load_bundle(run)
    rows = pad_sequences([[BOS, *each[:20], EOS] for each in bundle.target_vocabulary.encode(LINES)])
    mask = rows != PAD
    with torch.no_grad():
        if name in ENCODERS:
            found = run_graph(tmp_path / "onnx" / "model.onnx", tokens=rows.numpy(), mask=mask.numpy())
            expected = bundle.model.logits(bundle.model.decoder(rows, bundle.model.encode(rows, mask)).features)
            np.testing.assert_allclose(found[mask.numpy()], expected[mask].numpy(), atol=1e-4)
        elif name in DECODERS:
            no_source = torch.zeros(len(rows), 0, dtype=torch.long)
            found = run_graph(tmp_path / "onnx" / "decoder.onnx", tokens=rows[:, :12].numpy())
            expected = bundle.model.logits(bundle.model(no_source, no_source.bool(), rows[:, :12]).features)[:, -1]
            np.testing.assert_allclose(found, expected.numpy(), atol=1e-4)
        else:
            found = run_graph(tmp_path / "onnx" / "encoder.onnx", tokens=rows.numpy(), mask=mask.numpy())
            expected = bundle.model.encode(rows, mask).states
            np.testing.assert_allclose(found[mask.numpy()], expected[mask].numpy(), atol=1e-4)


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "BertForMaskedLM", "MarianMTModel"])
def test_special_tokens_written_in_a_text_are_plain_text(exported: Any, tmp_path: Path, name: str) -> None:
    folder = exported(name)
    import_folder(folder / "theirs", tmp_path / "again")
    first, second = (load_bundle(each).target_vocabulary for each in (folder / "run", tmp_path / "again"))
    text = f"a </s> dog <s> in <pad> the {MASK_CHARACTER if name in ENCODERS else ''} park <unk>"
    assert first.encode([text]) == second.encode([text])
