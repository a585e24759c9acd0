"""The native engine gives the same hypotheses as PyTorch, and is batch-invariant to the last bit."""

import random
import re
import resource
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from regard import native
from regard.alignment.shortlist import Shortlist
from regard.data.settings import SubwordSettings
from regard.data.tokenizers.sentencepiece_tokenizer import train_tokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.inference.engines import native as engines
from regard.inference.engines.native import NativeEngine
from regard.inference.engines.native_weights import Weights, build_weights, unsupported_reason
from regard.inference.engines.torch import TorchEngine
from regard.inference.search_config import Sampling, SearchConfig
from regard.loading import load
from regard.models.settings import ModelSettings
from regard.models.shapes import SHAPES
from regard.runs.bundle import save_bundle
from regard.runs.folder import open_run
from regard.special_tokens import EOS
from tests.bundles import LINES
from tests.inference.engines.test_ctranslate2 import SUPPORTED_KINDS, TEXTS, save_random_model
from tests.inference.engines.test_shortlisted_model import random_shortlist
from tests.models.variants import DECODERS, ENCODERS

CONFIGS = [
    SearchConfig(1, max_length=20),
    SearchConfig(4, nbest=3, max_length=20, patient=False, length_penalty=0.7),
    SearchConfig(5, nbest=2, max_length=20, patient=True),
    SearchConfig(3, max_length=20, length_penalty=0.0, patient=False),
]


@pytest.mark.parametrize("kind", SUPPORTED_KINDS)
@pytest.mark.parametrize("tie", ["none", "target", "all"])
def test_every_supported_transformer_gives_the_same_hypotheses_as_pytorch(
    subwords: SubwordTokenizer, tmp_path: Path, kind: str, tie: str
) -> None:
    sources = [[*tokens, EOS] for tokens in subwords.encode(TEXTS)]
    lengths: set[int] = set()
    compared = different = 0
    for end_bias in (-3, -1, 0, 2):
        bundle = save_random_model(subwords, tmp_path, kind, kind, tie, end_bias)
        engine, reference = NativeEngine(open_run(tmp_path), threads=1), TorchEngine(bundle)
        for config in CONFIGS:
            assert not engine.unsupported_reason(config)
            for expected, found in zip(reference.search(sources, config), engine.search(sources, config), strict=True):
                compared += 1
                lengths |= {len(h.tokens) for h in expected}
                if [h.tokens for h in found] == [h.tokens for h in expected]:
                    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-3)
                else:
                    different += 1
    # Models with random weights repeat themselves, and the same tokens in another order score almost the same.
    assert different <= compared // 50
    assert len(lengths) > 1 or tie != "none"


RECURRENT_DECODERS = [name for name, part in DECODERS.items() if part["kind"] == "recurrent"]
RECURRENT_ENCODERS = [name for name, part in ENCODERS.items() if part["kind"] == "recurrent"]


def is_supported(encoder: str, decoder: str) -> bool:
    return not unsupported_reason(
        ModelSettings.parse({"encoder": ENCODERS[encoder], "decoder": DECODERS[decoder], "tie": "none"})
    )


@pytest.mark.parametrize(
    ("encoder", "decoder"),
    [(RECURRENT_ENCODERS[n % len(RECURRENT_ENCODERS)], name) for n, name in enumerate(RECURRENT_DECODERS)]
    + [(name, "bahdanau") for name in RECURRENT_ENCODERS],
)
def test_every_supported_recurrent_model_gives_the_same_hypotheses_as_pytorch(
    subwords: SubwordTokenizer, tmp_path: Path, encoder: str, decoder: str
) -> None:
    unsupported = ("cosine", "sparsemax", "entmax", "sigmoid", "location", "coverage", "gated", "copying")
    assert is_supported(encoder, decoder) == (not any(name in decoder for name in unsupported))
    if not is_supported(encoder, decoder):
        return
    sources = [[*tokens, EOS] for tokens in subwords.encode(TEXTS)]
    compared = different = 0
    for end_bias in (-3, 0, 2):
        bundle = save_random_model(subwords, tmp_path, encoder, decoder, "none", end_bias)
        engine, reference = NativeEngine(open_run(tmp_path), threads=1), TorchEngine(bundle)
        for config in CONFIGS:
            for expected, found in zip(reference.search(sources, config), engine.search(sources, config), strict=True):
                compared += 1
                if [h.tokens for h in found] == [h.tokens for h in expected]:
                    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-3)
                else:
                    different += 1
    assert different <= compared // 50


@pytest.mark.parametrize("tie", ["target", "all"])
def test_recurrent_models_with_tied_embeddings_give_the_same_hypotheses_as_pytorch(
    subwords: SubwordTokenizer, tmp_path: Path, tie: str
) -> None:
    bundle = save_random_model(subwords, tmp_path, "recurrent", "luong input feeding", tie)
    sources = [[*tokens, EOS] for tokens in subwords.encode(TEXTS)]
    engine, reference = NativeEngine(open_run(tmp_path), threads=1), TorchEngine(bundle)
    for expected, found in zip(reference.search(sources, CONFIGS[1]), engine.search(sources, CONFIGS[1]), strict=True):
        assert [h.tokens for h in found] == [h.tokens for h in expected]


@pytest.mark.parametrize("name", ["vanilla-rnn", "bahdanau", "luong", "luong-local", "hard"])
def test_recurrent_presets_are_supported(name: str) -> None:
    assert not unsupported_reason(ModelSettings.parse(SHAPES[name].model))


def test_encoder_and_decoder_may_differ(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    bundle = save_random_model(subwords, tmp_path, "swiglu", "post norm", "none", 0)
    sources = [[*tokens, EOS] for tokens in subwords.encode(TEXTS)]
    engine, reference = NativeEngine(open_run(tmp_path), threads=1), TorchEngine(bundle)
    for expected, found in zip(reference.search(sources, CONFIGS[1]), engine.search(sources, CONFIGS[1]), strict=True):
        assert [h.tokens for h in found] == [h.tokens for h in expected]


@pytest.mark.parametrize("beam", [1, 5, 24, 25, 40])
def test_the_best_tokens_of_a_large_vocabulary_are_found(tmp_path: Path, beam: int) -> None:
    """The vocabulary is larger than a block of the ranking; the best tokens are anywhere, some have equal scores."""
    tokenizer = train_tokenizer([f"w{number}" for number in range(2600)], SubwordSettings(kind="word"), 2700)
    assert len(tokenizer) > 2 * 1024
    bundle = save_random_model(tokenizer, tmp_path, "recurrent", "bahdanau", "none", -9)
    with torch.no_grad():
        bundle.model.output.weight[2000:2030] = bundle.model.output.weight[7]
        bundle.model.output.bias[2000:2030] = bundle.model.output.bias[7] + 2
    save_bundle(tmp_path, bundle)
    sources = [[*tokens, EOS] for tokens in tokenizer.encode(["w1 w5", "w2599", "w7 w7 w8 w1024"])]
    config = SearchConfig(beam, nbest=beam, max_length=3, patient=False)
    engine, reference = NativeEngine(open_run(tmp_path), threads=1), TorchEngine(bundle)
    for expected, found in zip(reference.search(sources, config), engine.search(sources, config), strict=True):
        assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-3)
        assert len({tuple(h.tokens) for h in found}) == len(found)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("with_shortlist", [False, True])
@pytest.mark.parametrize(
    "encoder_decoder", [("transformer", "transformer"), ("recurrent", "after local-p input feeding")]
)
def test_results_are_batch_invariant_bit_for_bit(
    subwords: SubwordTokenizer, tmp_path: Path, precision: str, with_shortlist: bool, encoder_decoder: tuple[str, str]
) -> None:
    save_random_model(subwords, tmp_path, *encoder_decoder, "none", -1)
    shortlist = random_shortlist(len(subwords)) if with_shortlist else None
    sources = [[*tokens, EOS] for tokens in subwords.encode([*TEXTS, *LINES])] * 3
    single_threaded = NativeEngine(open_run(tmp_path), precision=precision, threads=1, shortlist=shortlist)
    multi_threaded = NativeEngine(open_run(tmp_path), precision=precision, threads=3, shortlist=shortlist)
    for config in CONFIGS[:2]:
        together = single_threaded.search(sources, config)
        assert multi_threaded.search(sources, config) == together, "threads"
        assert single_threaded.search(sources[::-1], config)[::-1] == together, "order"
        for number in range(0, len(sources), 7):
            assert single_threaded.search([sources[number]], config)[0] == together[number], "alone, scores included"


def test_int8_is_close_to_float32(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    save_random_model(subwords, tmp_path, "transformer", "transformer", "none", -1)
    sources = [[*tokens, EOS] for tokens in subwords.encode(TEXTS)]
    config = SearchConfig(1, max_length=6)
    reference = NativeEngine(open_run(tmp_path), threads=1).search(sources, config)
    quantized = NativeEngine(open_run(tmp_path), precision="int8", threads=1).search(sources, config)
    same = [a[0].tokens[:2] == b[0].tokens[:2] for a, b in zip(reference, quantized, strict=True)]
    assert np.mean(same) > 0.5, "a model with random weights is as sensitive as can be"


@pytest.mark.parametrize("encoder_decoder", [("transformer", "transformer"), ("recurrent", "bahdanau")])
def test_only_shortlisted_tokens_are_generated(
    subwords: SubwordTokenizer, tmp_path: Path, encoder_decoder: tuple[str, str]
) -> None:
    bundle = save_random_model(subwords, tmp_path, *encoder_decoder, "target", 0)
    shortlist = random_shortlist(len(subwords))
    sources = [[*tokens, EOS] for tokens in subwords.encode(TEXTS)]
    engine, reference = NativeEngine(open_run(tmp_path), threads=1, shortlist=shortlist), TorchEngine(bundle, shortlist)
    for config in CONFIGS:
        for source, expected, found in zip(
            sources, reference.search(sources, config), engine.search(sources, config), strict=True
        ):
            assert [h.tokens for h in found] == [h.tokens for h in expected]
            assert set(found[0].tokens) <= set(shortlist.candidates_for(source).tolist())


def test_a_shortlist_of_special_tokens_only_ends_at_once(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    save_random_model(subwords, tmp_path, "transformer", "transformer")
    special_tokens_only = Shortlist(np.full((len(subwords), 1), -1, np.int32), np.arange(4, dtype=np.int32))
    engine = NativeEngine(open_run(tmp_path), threads=1, shortlist=special_tokens_only)
    for hypotheses in engine.search([[5, EOS], [6, 7, EOS]], SearchConfig(3, max_length=4)):
        assert all(set(h.tokens) <= {1, EOS} for h in hypotheses)


def test_weights_that_are_not_finite_are_reported(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    save_random_model(subwords, tmp_path, "transformer", "transformer")
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["decoder.norm.weight"][:] = torch.nan
    save_file(tensors, tmp_path / "model.safetensors")
    for kind in ("float32", "int8"):
        with pytest.raises(ValueError, match=r"decoder\.norm\.weight has numbers that are not finite"):
            NativeEngine(open_run(tmp_path), threads=1, precision=kind)
    tensors["decoder.norm.weight"][:] = 3e38
    save_file(tensors, tmp_path / "model.safetensors")
    engine = NativeEngine(open_run(tmp_path), threads=1)
    for config in CONFIGS[:2]:
        with pytest.raises(ValueError, match="its weights are damaged"):
            engine.search([[5, EOS]], config)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("encoder.layers.0.self_attention.query.weight", (3, 3)),
        ("decoder.layers.1.feedforward.inner.weight", (20, 31)),
        ("decoder.layers.0.cross_attention_norm.bias", (31,)),
        ("output.weight", (5, 32)),
        ("encoder.embedding.weight", (7, 32)),
    ],
)
def test_weights_with_wrong_shapes_are_rejected(
    subwords: SubwordTokenizer, tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    """C would read beyond their ends."""
    save_random_model(subwords, tmp_path, "transformer", "transformer")
    tensors = load_file(tmp_path / "model.safetensors")
    tensors[name] = torch.zeros(shape)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"model\.safetensors: tensor"):
        NativeEngine(open_run(tmp_path), threads=1)
    del tensors[name]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="is missing"):
        NativeEngine(open_run(tmp_path), threads=1)


ENCODER_DECODER = {
    "transformer": ("transformer", "transformer"),
    "recurrent": ("recurrent", "after local-p input feeding"),
}


@pytest.fixture(params=ENCODER_DECODER)
def weights(request: pytest.FixtureRequest, subwords: SubwordTokenizer, tmp_path: Path) -> Weights:
    save_random_model(subwords, tmp_path, *ENCODER_DECODER[request.param], "none", -1)
    return build_weights(open_run(tmp_path))


def construction_error(weights: Weights) -> str:
    """The error of the C library for these weights; empty if it accepts them."""
    library = native.library()
    assert library is not None
    try:
        library.regard_model_free(engines.new_model(library, weights, int8=False))
    except ValueError as error:
        return str(error).removeprefix("the C engine refuses the model: ")
    return ""


def shuffle(names: Iterable[str], order: random.Random) -> list[str]:
    in_order = list(names)
    return order.sample(in_order, len(in_order))


def test_tensors_and_settings_are_found_by_name_in_any_order(
    subwords: SubwordTokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [[*tokens, EOS] for tokens in subwords.encode(TEXTS)]
    for encoder_decoder in ENCODER_DECODER.values():
        save_random_model(subwords, tmp_path, *encoder_decoder, "none", -1)
        opened = open_run(tmp_path)
        expected = NativeEngine(opened, threads=1).search(sources, CONFIGS[1])
        for seed in range(3):
            shuffled, order = build_weights(opened), random.Random(seed)
            shuffled.tensors = {name: shuffled.tensors[name] for name in shuffle(shuffled.tensors, order)}
            shuffled.settings = {name: shuffled.settings[name] for name in shuffle(shuffled.settings, order)}
            with monkeypatch.context() as patch:
                patch.setattr(engines, "build_weights", lambda _, shuffled=shuffled: shuffled)
                assert NativeEngine(opened, threads=1).search(sources, CONFIGS[1]) == expected


def test_every_tensor_is_required_in_its_shape(weights: Weights) -> None:
    assert not construction_error(weights)
    for name, array in list(weights.tensors.items()):
        del weights.tensors[name]
        assert construction_error(weights) == f"tensor {name} is missing"
        expected = ", ".join(str(size) for size in array.shape)
        longer = (array.shape[0] + 1, *array.shape[1:])
        weights.tensors[name] = np.zeros(longer, np.float32)
        assert construction_error(weights) == f"tensor {name} is [{', '.join(map(str, longer))}], not [{expected}]"
        weights.tensors[name] = array.reshape(1, -1) if array.ndim == 1 else array.reshape(-1)
        assert re.fullmatch(rf"tensor {re.escape(name)} is \[.*\], not \[{expected}\]", construction_error(weights))
        weights.tensors[name] = array
    assert not construction_error(weights)


def test_every_setting_is_required_and_within_its_range(weights: Weights) -> None:
    for name, value in list(weights.settings.items()):
        del weights.settings[name]
        assert construction_error(weights) == f"setting {name} is missing"
        if not name.endswith(("epsilon", "scale", "radius")):
            for invalid in (-1, 1.5, float("nan"), 1e12):
                weights.settings[name] = invalid
                assert construction_error(weights).startswith(f"setting {name} is {invalid:g}, not an integer from")
        weights.settings[name] = value
    assert not construction_error(weights)


def test_unknown_tensors_and_settings_are_rejected(weights: Weights) -> None:
    """A misspelled name must not silently mean that there is none."""
    weights.tensors["decoder.nrom.bias"] = np.zeros(3, np.float32)
    assert construction_error(weights) == "tensor decoder.nrom.bias is not one of this model, or is there twice"
    del weights.tensors["decoder.nrom.bias"]
    weights.settings["decoder.deph"] = 3
    assert construction_error(weights) == "setting decoder.deph is not one of this model, or is there twice"


def test_heads_that_do_not_divide_the_width_are_rejected(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    save_random_model(subwords, tmp_path, "transformer", "transformer")
    weights = build_weights(open_run(tmp_path))
    weights.settings["decoder.heads"] = weights.settings["width"] - 1
    assert construction_error(weights) == "setting decoder.heads does not divide the width"


def test_unsupported_searches_go_to_pytorch(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    save_random_model(subwords, tmp_path, "transformer", "transformer", "none", -1)
    translator = load(tmp_path, device="cpu")
    assert translator.run.engine.name == "native"
    for config in (
        SearchConfig(4, beam_groups=2),
        SearchConfig(no_repeat_ngram_size=2),
        SearchConfig(forbidden=("a",)),
        SearchConfig(sampling=Sampling()),
    ):
        assert translator.run.engine.unsupported_reason(config)
    assert translator.translate("the cat", temperature=1.0).tokens
    assert translator.translate("the cat", prefix="the dog").text.startswith("the dog")


def test_without_a_compiler_another_engine_is_chosen(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    save_random_model(subwords, tmp_path, "transformer", "transformer")
    with native.disabled():
        assert load(tmp_path, device="cpu").run.engine.name == "ctranslate2"
        with pytest.raises(ValueError, match="the native engine cannot run this model here, since the C kernels"):
            load(tmp_path, device="cpu", engine="native")


def test_many_sources_are_searched_in_batches(
    subwords: SubwordTokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_random_model(subwords, tmp_path, "transformer", "transformer", "none", -1)
    sources = [[*tokens, EOS] for tokens in subwords.encode(TEXTS * 5)]
    in_one_batch = NativeEngine(open_run(tmp_path), threads=2).search(sources, CONFIGS[1])
    monkeypatch.setattr(engines, "MIN_SOURCES_SMALL", 3)
    assert NativeEngine(open_run(tmp_path), threads=2).search(sources, CONFIGS[1]) == in_one_batch


def resident_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_a_model_is_freed_with_its_engine(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    """The memory that C holds for a model is freed, which does not affect other models."""
    save_random_model(subwords, tmp_path, "transformer", "transformer")
    opened = open_run(tmp_path)
    weights = (tmp_path / "model.safetensors").stat().st_size
    count = max(100, (64 << 20) // weights)
    kept_engine = NativeEngine(opened, threads=1)
    before = kept_engine.search([[5, EOS]], CONFIGS[0])
    start = None
    for number in range(count):
        engine = NativeEngine(opened, threads=1)
        assert engine.search([[5, EOS]], CONFIGS[0]) == before
        del engine
        if number == count // 4:  # the allocator's caches are full
            start = resident_bytes()
    assert start is not None
    assert resident_bytes() - start < count * weights / 4
    assert kept_engine.search([[5, EOS]], CONFIGS[0]) == before
