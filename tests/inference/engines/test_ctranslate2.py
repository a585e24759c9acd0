"""The CTranslate2 engine gives the same tokens as PyTorch in float32, for every supported Transformer."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regard import native
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.inference.engines.ctranslate2 import CTranslate2Engine
from regard.inference.engines.torch import TorchEngine
from regard.inference.search_config import Sampling, SearchConfig
from regard.loading import load
from regard.runs.bundle import Bundle, save_bundle
from regard.runs.ctranslate2_conversion import convert_to_ctranslate2, unsupported_by_ctranslate2
from regard.runs.folder import open_run
from regard.special_tokens import EOS
from tests.bundles import LINES, random_bundle

SUPPORTED_KINDS = [
    *("transformer", "post norm", "rms", "gelu", "gelu-tanh", "silu", "swiglu", "geglu"),
    *("no position", "learned"),
]
TEXTS = [*LINES[:4], "the dog ran", "cat", "park on the mat", "zebra!"]


def save_random_model(
    subwords: SubwordTokenizer, folder: Path, encoder: str, decoder: str, tie: str = "none", end_bias: float = 4
) -> Bundle:
    """end_bias: added to the logit of the end of sequence, or to the norm of its embedding if that is tied."""
    bundle = random_bundle(subwords, encoder, decoder, tie=tie, max_tokens=40)
    with torch.no_grad():
        if tie == "none":
            bundle.model.output.bias[EOS] += end_bias
        else:
            bundle.model.output.weight[EOS] *= 2 + end_bias / 4
    save_bundle(folder, bundle)
    return bundle


@pytest.mark.parametrize("kind", SUPPORTED_KINDS)
@pytest.mark.parametrize("tie", ["none", "target", "all"])
def test_every_supported_transformer_gives_the_same_hypotheses_as_pytorch(
    subwords: SubwordTokenizer, tmp_path: Path, kind: str, tie: str
) -> None:
    sources = [[*tokens, EOS] for tokens in subwords.encode(TEXTS)]
    lengths: set[int] = set()
    for end_bias in (-3, -2, -1, 0, 1, 2):
        bundle = save_random_model(subwords, tmp_path, kind, kind, tie, end_bias)
        opened = open_run(tmp_path)
        assert not unsupported_by_ctranslate2(opened.description.model)
        engine, reference = CTranslate2Engine(opened, precision="float32", threads=1), TorchEngine(bundle)
        for config in (
            SearchConfig(1, max_length=20),
            SearchConfig(4, nbest=3, max_length=20, patient=False, length_penalty=0.7),
        ):
            assert not engine.unsupported_reason(config)
            for expected, found in zip(reference.search(sources, config), engine.search(sources, config), strict=True):
                if config.beam > 1 and max(len(h.tokens) for h in expected) == 20:
                    continue  # no room for the end of sequence, whose log-probability PyTorch's search counts
                assert [h.tokens for h in found] == [h.tokens for h in expected]
                lengths |= {len(h.tokens) for h in expected}
                for hypothesis in found:
                    length = len(hypothesis.tokens)
                    assert hypothesis.log_probability == pytest.approx(hypothesis.score * length**config.length_penalty)
                if len(expected[0].tokens) < 20:
                    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-3)
    assert len(lengths) > (1 if tie == "none" else 0)


def test_unsupported_searches_are_reported(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    save_random_model(subwords, tmp_path, "transformer", "transformer")
    engine = CTranslate2Engine(open_run(tmp_path), threads=1)
    for config in (
        SearchConfig(patient=True),
        SearchConfig(patient=False, coverage_penalty=0.1),
        SearchConfig(4, beam_groups=2, patient=False),
        SearchConfig(1, no_repeat_ngram_size=2),
        SearchConfig(1, forbidden=("a",)),
        SearchConfig(1, sampling=Sampling()),
    ):
        assert engine.unsupported_reason(config)
    assert not engine.unsupported_reason(SearchConfig(1))
    assert not engine.unsupported_reason(SearchConfig(patient=False))


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_ctranslate2_is_batch_invariant(subwords: SubwordTokenizer, tmp_path: Path, precision: str) -> None:
    save_random_model(subwords, tmp_path, "transformer", "transformer")
    engine = CTranslate2Engine(open_run(tmp_path), precision=precision, threads=1)
    sources = [[*tokens, EOS] for tokens in subwords.encode(TEXTS * 4)]
    for config in (SearchConfig(1, max_length=20), SearchConfig(4, max_length=20, patient=False)):
        together = [hypotheses[0].tokens for hypotheses in engine.search(sources, config)]
        assert [hypotheses[0].tokens for hypotheses in engine.search(sources[::-1], config)][::-1] == together
        assert [engine.search([source], config)[0][0].tokens for source in sources] == together


def test_the_engine_is_selected_and_reported(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    for name, encoder_decoder in (("a", ("transformer", "transformer")), ("b", ("recurrent", "transformer"))):
        (tmp_path / name).mkdir()
        save_random_model(subwords, tmp_path / name, *encoder_decoder)
    transformer, recurrent = load(tmp_path / "a", device="cpu"), load(tmp_path / "b", device="cpu")
    assert (transformer.run.engine.name, transformer.engine_reason) == ("native", "the native engine, int8")
    with native.disabled():
        without_native = load(tmp_path / "a", device="cpu", precision="int8")
    assert (without_native.run.engine.name, without_native.engine_reason) == ("ctranslate2", "CTranslate2, int8")
    assert (recurrent.run.engine.name, recurrent.engine_reason) == (
        "torch",
        "PyTorch, since the encoder is recurrent, not a Transformer",
    )
    assert load(tmp_path / "a", engine="torch").run.engine.name == "torch"
    with pytest.raises(ValueError, match="CTranslate2 cannot run this model here, since the encoder is recurrent"):
        load(tmp_path / "b", engine="ctranslate2")
    with pytest.raises(ValueError, match="engine: there is no 'fast'; there are auto, native, ctranslate2, torch"):
        load(tmp_path / "a", engine="fast")
    with pytest.raises(ValueError, match="precision: there is no 'int4'"):
        load(tmp_path / "a", precision="int4")


def test_pytorch_is_not_imported_until_it_is_needed(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    save_random_model(subwords, tmp_path, "transformer", "transformer")
    # CTranslate2's converter imports PyTorch; training has converted the run before.
    convert_to_ctranslate2(open_run(tmp_path), "int8")
    script = (
        "import sys, regard\n"
        "for engine in ('native', 'ctranslate2'):\n"
        "    t = regard.load(sys.argv[1], device='cpu', engine=engine, precision='int8')\n"
        "    t.translate('the cat', beam=1)\n"
        "    assert 'torch' not in sys.modules, 'torch'\n"
        "t.translate('the cat', beam=1, alignment=True)\n"
        "assert 'torch' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=120)
