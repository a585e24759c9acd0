"""Runs in other projects' formats: what comes back is what went in, and every runtime says the same."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from regard.data.batching import padded
from regard.inference.loading import load
from regard.interop.export_run import export_run
from regard.interop.import_folder import import_folder
from regard.runs.bundle import load_bundle, tensors_of
from regard.special_tokens import BEGIN, END, MASK, PAD
from tests.interop.foreign import LINES, make

KINDS = [
    "bert BertForPreTraining",
    "bert BertForSequenceClassification",
    "roberta RobertaForMaskedLM",
    "distilbert DistilBertForMaskedLM",
    "gpt2 GPT2LMHeadModel",
    "marian MarianMTModel",
]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[str, Path] = {}

    def get(kind: str) -> Path:
        if kind not in made:
            folder = tmp_path_factory.mktemp("foreign")
            make(kind, folder / "theirs")
            import_folder(folder / "theirs", folder / "run")
            made[kind] = folder
        return made[kind]

    return get


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_imported_comes_back_to_the_bit(imported: Any, kind: str, tmp_path: Path) -> None:
    folder = imported(kind)
    export_run(folder / "run", "huggingface", tmp_path / "back")
    before, after = (load_file(each / "model.safetensors") for each in (folder / "theirs", tmp_path / "back"))
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]), name
    for path in (folder / "theirs").iterdir():
        if path.name != "model.safetensors":
            assert path.read_bytes() == (tmp_path / "back" / path.name).read_bytes()


def run_graph(path: Path, **inputs: Any) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)[0]


def test_a_translator_in_onnx_says_the_same_words(imported: Any, tmp_path: Path) -> None:
    run = imported("marian MarianMTModel") / "run"
    export_run(run, "onnx", tmp_path / "onnx")
    model = load(run, engine="torch")
    results = model.translate(LINES, beam=1)
    tokens = padded([result.source_tokens for result in results])
    mask = (tokens != PAD).numpy()
    states = run_graph(tmp_path / "onnx" / "encoder.onnx", tokens=tokens.numpy(), mask=mask)
    words = np.full((len(tokens), 1), BEGIN)
    for _ in range(max(len(result.tokens) for result in results)):
        logits = run_graph(tmp_path / "onnx" / "decoder.onnx", words=words, states=states, mask=mask)
        logits[:, [PAD, BEGIN]] = -np.inf
        words = np.concatenate([words, logits.argmax(-1)[:, None]], 1)
    for row, result in zip(words[:, 1:].tolist(), results, strict=True):
        if len(result.tokens) < 40:  # it ended by itself
            assert row[: len(result.tokens)] == result.tokens


def test_readers_in_onnx_give_the_same_numbers(imported: Any, tmp_path: Path) -> None:
    for kind in ("bert BertForPreTraining", "bert BertForSequenceClassification"):
        run = imported(kind) / "run"
        export_run(run, "onnx", tmp_path / kind)
        bundle = load_bundle(run)
        tokens = padded([[BEGIN, *each, END] for each in bundle.source_side.encode(LINES)])
        tokens[:, 2] = MASK
        mask = tokens != PAD
        with torch.no_grad():
            memory = bundle.model.encode(tokens, mask)
            expected = bundle.model.logits(bundle.model.decoder(tokens, memory).features)
        found = run_graph(tmp_path / kind / "model.onnx", tokens=tokens.numpy(), mask=mask.numpy())
        if bundle.description.model.labels:
            np.testing.assert_allclose(found[:, END + 1 :], expected[:, 0, END + 1 :].numpy(), atol=1e-4)
        else:
            np.testing.assert_allclose(found[mask.numpy()], expected[mask].numpy(), atol=1e-4)


def test_a_language_model_in_onnx_goes_on_alike(imported: Any, tmp_path: Path) -> None:
    run = imported("gpt2 GPT2LMHeadModel") / "run"
    export_run(run, "onnx", tmp_path / "onnx")
    result = load(run).translate("A dog runs", beam=1, most=10)
    words = np.array([load(run).target_side.encode(["A dog runs"])[0]])
    begun = words.shape[1]
    for _ in range(10):
        logits = run_graph(tmp_path / "onnx" / "decoder.onnx", words=words)
        logits[:, [PAD, BEGIN]] = -np.inf
        words = np.concatenate([words, logits.argmax(-1)[:, None]], 1)
    said = words[0, begun:].tolist()
    said = said[: said.index(END)] if END in said else said
    assert result.tokens[begun : begun + len(said)] == said


def test_ctranslate2_runs_what_was_exported(imported: Any, tmp_path: Path) -> None:
    import ctranslate2

    run = imported("marian MarianMTModel") / "run"
    export_run(run, "ctranslate2", tmp_path / "folder")
    model = load(run, engine="torch")
    results = model.translate(LINES, beam=4)
    translator = ctranslate2.Translator(str(tmp_path / "folder"))
    pieces = [model.source_side.pieces(result.source_tokens) for result in results]
    found = translator.translate_batch(pieces, beam_size=4, length_penalty=1.0, min_decoding_length=0)
    ended = 0
    for each, result in zip(found, results, strict=True):
        if len(result.tokens) < 40:
            assert each.hypotheses[0] == model.target_side.pieces(result.tokens[:-1])
            ended += 1
    assert ended


def test_a_folder_of_safetensors_is_a_model_by_itself(imported: Any, tmp_path: Path) -> None:
    run = imported("marian MarianMTModel") / "run"
    export_run(run, "safetensors", tmp_path / "folder")
    assert load(tmp_path / "folder").translate(LINES[0]).text == load(run).translate(LINES[0]).text


def test_what_cannot_be_is_said(imported: Any, tmp_path: Path) -> None:
    run = imported("bert BertForPreTraining") / "run"
    with pytest.raises(ValueError, match="does not predict one token after the other"):
        export_run(run, "ctranslate2", tmp_path / "a")
    with pytest.raises(ValueError, match="there is no 'tensorflow'"):
        export_run(run, "tensorflow", tmp_path / "a")
    assert not (tmp_path / "a").exists()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "file").touch()
    with pytest.raises(ValueError, match="it exists"):
        export_run(run, "onnx", tmp_path / "b")


def broken(folder: Path, tmp_path: Path, change: Any) -> Path:
    """A copy of a folder of Hugging Face's, something in it changed."""
    import shutil

    copy = tmp_path / "broken"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / "theirs", copy)
    change(copy)
    return copy


def test_what_does_not_fit_is_named(imported: Any, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    folder = imported("bert BertForPreTraining")

    def weights(change: Any) -> Any:
        def apply(copy: Path) -> None:
            tensors = load_file(copy / "model.safetensors")
            change(tensors)
            save_file(tensors, copy / "model.safetensors")

        return apply

    def config(**more: Any) -> Any:
        def apply(copy: Path) -> None:
            about = json.loads((copy / "config.json").read_text())
            (copy / "config.json").write_text(json.dumps(about | more))

        return apply

    name = "bert.encoder.layer.1.output.dense.bias"
    cases = [
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
    for change, said in cases:
        with pytest.raises(ValueError, match=said):
            import_folder(broken(folder, tmp_path, change), tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_an_index_cannot_name_files_elsewhere(imported: Any, tmp_path: Path) -> None:
    folder = imported("bert BertForPreTraining")

    def several(copy: Path) -> None:
        (copy / "model.safetensors").rename(copy / "part.safetensors")
        names = dict.fromkeys(load_file(copy / "part.safetensors"), "part.safetensors")
        (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))

    import_folder(broken(folder, tmp_path, several), tmp_path / "run")

    def elsewhere(copy: Path) -> None:
        several(copy)
        (copy / "part.safetensors").rename(tmp_path / "part.safetensors")
        index = copy / "model.safetensors.index.json"
        index.write_text(index.read_text().replace("part.safetensors", "../part.safetensors"))

    with pytest.raises(ValueError, match="is no safetensors file of this folder"):
        import_folder(broken(folder, tmp_path, elsewhere), tmp_path / "other")


def test_a_hostile_configuration_is_one_sentence_at_once(imported: Any, tmp_path: Path) -> None:
    def config(**more: Any) -> Any:
        def apply(copy: Path) -> None:
            about = json.loads((copy / "config.json").read_text())
            (copy / "config.json").write_text(json.dumps(about | more))

        return apply

    bert, marian = imported("bert BertForSequenceClassification"), imported("marian MarianMTModel")
    cases = [
        (bert, config(num_hidden_layers=10**9), "num_hidden_layers"),
        (bert, config(hidden_size=10**9), "hidden_size"),
        (bert, config(hidden_size=4096, intermediate_size=10**5, num_hidden_layers=2), "tensor"),
        (bert, config(vocab_size=100_000), r"vocab_size\) 100,000"),
        (bert, config(hidden_act=[1]), "activation"),
        (bert, config(model_type=["bert"]), "model_type"),
        (bert, config(id2label=[1, 2]), "id2label"),
        (bert, config(id2label={"0": "a\nb", "1": "c"}), "id2label"),
        (marian, config(encoder_layers=10**7), "encoder_layers"),
        (marian, config(pad_token_id=10**7), "no vocabulary"),
        (marian, lambda copy: (copy / "target.spm").write_bytes(b""), "empty"),
        (marian, lambda copy: (copy / "vocab.json").write_text("[]"), "vocab.json"),
    ]
    for folder, change, said in cases:
        with pytest.raises(ValueError, match=said):
            import_folder(broken(folder, tmp_path, change), tmp_path / "run")
    gpt = imported("gpt2 GPT2LMHeadModel")
    for content in ("[]", '{"a": "b"}'):
        with pytest.raises(ValueError, match="vocabulary"):
            import_folder(
                broken(gpt, tmp_path, lambda copy, c=content: (copy / "vocab.json").write_text(c)), tmp_path / "run"
            )


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_a_folder_of_ctranslate2_comes_back(imported: Any, tmp_path: Path, kind: str) -> None:
    run = imported("marian MarianMTModel") / "run"
    export_run(run, "ctranslate2", tmp_path / "folder", precision=kind)
    import_folder(tmp_path / "folder", tmp_path / "again")
    first, second = load(run, engine="torch"), load(tmp_path / "again", engine="torch")
    if kind == "float32":
        for line in LINES:
            a, b = first.translate(line, beam=4), second.translate(line, beam=4)
            assert a.text == b.text
            assert a.score == pytest.approx(b.score, abs=1e-5)
        before, after = (tensors_of(each.bundle.model) for each in (first, second))
        for name in before:
            if name != "output.bias" and "place" not in name:
                assert torch.equal(before[name].sort(0).values, after[name].sort(0).values)
    else:
        before, after = (tensors_of(each.bundle.model) for each in (first, second))
        for name, tensor in before.items():
            if name.startswith("encoder.layers") and name.endswith("weight") and tensor.ndim == 2:
                rows = tensor.abs().amax(1, keepdim=True)
                assert bool(((tensor - after[name]).abs() <= rows / 254 * 1.01).all())


@pytest.mark.parametrize("tie", ["all", "target", "none"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"norm_place": "post", "activation": "gelu"},
        {"norm": "rms", "activation": "swiglu"},
        {"position": "learned", "positions": 128, "scale_embedding": False},
    ],
)
def test_runs_of_every_shape_come_back_from_ctranslate2(tmp_path: Path, tie: str, more: dict[str, Any]) -> None:
    run = own_run(tmp_path, tie, more)
    export_run(run, "ctranslate2", tmp_path / "folder")
    import_folder(tmp_path / "folder", tmp_path / "again")
    first, second = load(run, engine="torch"), load(tmp_path / "again", engine="torch")
    for line in LINES[:1]:
        said = [each.translate(line, beam=1, most=40) for each in (first, second)]
        pieces = [each.target_side.pieces(one.tokens[:40]) for each, one in zip((first, second), said, strict=True)]
        assert pieces[0] == pieces[1]
        scored = [each.translate(line, beam=1, most=8, prefix="Ein", scores=True) for each in (first, second)]
        assert scored[0].token_scores[:3] == pytest.approx(scored[1].token_scores[:3], abs=1e-4)


def own_run(tmp_path: Path, tie: str, more: dict[str, Any]) -> Path:
    """A Transformer with random weights and a vocabulary of its own."""
    from regard.data.settings import SubwordSettings
    from regard.data.tokenizers.sentencepiece_tokenizer import train_tokenizer
    from regard.models.settings import ModelSettings
    from regard.runs.bundle import Bundle, new_model, save_bundle
    from regard.runs.folder import Description

    part = {"kind": "transformer", "width": 16, "heads": 2, "layers": 2, "feedforward": 24, **more}
    model = ModelSettings.parse({"encoder": part, "decoder": part, "tie": tie})
    joint = train_tokenizer(LINES * 3, SubwordSettings(), 330)
    source = joint if tie == "all" else train_tokenizer(LINES[:3] * 3, SubwordSettings(), 310)
    torch.manual_seed(3)
    made = new_model(model, source, joint).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    (tmp_path / "run").mkdir()
    save_bundle(tmp_path / "run", Bundle(Description(longest=100, model=model), made, source, joint))
    return tmp_path / "run"


def test_damaged_folders_of_ctranslate2_are_sentences(imported: Any, tmp_path: Path) -> None:
    import shutil

    run = imported("marian MarianMTModel") / "run"
    whole = tmp_path / "folder"
    export_run(run, "ctranslate2", whole)
    content = (whole / "model.bin").read_bytes()

    def model(changed: bytes) -> Any:
        return lambda folder: (folder / "model.bin").write_bytes(changed)

    part = b"layer_1/ffn/linear_0/bias"
    cases = [
        (model(content[: len(content) // 2]), "damaged"),
        (model(b"\x09" + content[1:]), "format 9"),
        (model(content.replace(b"TransformerSpec", b"WhisperSpec1234")), "WhisperSpec"),
        (model(content.replace(part, b"layer_1/ffn/linear_0/bios")), "linear_0/bias is missing"),
        (lambda folder: (folder / "source.spm").unlink(), "source.spm"),
        (lambda folder: (folder / "shared_vocabulary.json").unlink(), "vocabulary"),
        (lambda folder: (folder / "shared_vocabulary.json").write_text('["a", "b"]'), "<unk>"),
        (lambda folder: (folder / "config.json").write_text("[]"), "JSON object"),
    ]
    for number, (change, message) in enumerate(cases):
        copy = tmp_path / f"broken{number}"
        shutil.copytree(whole, copy)
        change(copy)
        with pytest.raises(ValueError, match=message):
            import_folder(copy, tmp_path / "x")
        assert not (tmp_path / "x").exists()


def test_what_ctranslate2_s_own_converter_made_says_the_same(imported: Any, tmp_path: Path) -> None:
    import shutil

    from ctranslate2.converters import TransformersConverter
    from safetensors.torch import save_file

    theirs = tmp_path / "theirs"
    shutil.copytree(imported("marian MarianMTModel") / "theirs", theirs)
    tensors = load_file(theirs / "model.safetensors")
    tensors["model.shared.weight"][-1] = 0  # padding, with which a text begins, is nothing in all real ones
    save_file(tensors, theirs / "model.safetensors", {"format": "pt"})
    import_folder(theirs, tmp_path / "first")
    made = TransformersConverter(str(theirs), copy_files=["source.spm", "target.spm"])
    made.convert(str(tmp_path / "folder"))
    import_folder(tmp_path / "folder", tmp_path / "second")
    first, second = (load(tmp_path / name, engine="torch") for name in ("first", "second"))
    for line in LINES:
        a, b = (each.translate(line, beam=4) for each in (first, second))
        assert a.text == b.text
        assert a.score == pytest.approx(b.score, abs=1e-5)
