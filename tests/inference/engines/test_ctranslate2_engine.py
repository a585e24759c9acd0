"""CTranslate2 says what PyTorch says: the same tokens in float32, whatever the Transformer is made of."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regard import native
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.inference.engines.ctranslate2 import CTranslate2Engine
from regard.inference.engines.torch import TorchEngine
from regard.inference.results import Sampling, SearchConfig
from regard.loading import load
from regard.runs.bundle import Bundle, save_bundle
from regard.runs.conversion import convert_to_ctranslate2, unsupported_by_ctranslate2
from regard.runs.folder import open_run
from regard.special_tokens import END
from tests.bundles import LINES, random_bundle

RUN = ["transformer", "post norm", "rms", "gelu", "gelu-tanh", "silu", "swiglu", "geglu", "no position", "learned"]
TEXTS = [*LINES[:4], "the dog ran", "cat", "park on the mat", "zebra!"]


def saved(
    subwords: SubwordTokenizer, folder: Path, encoder: str, decoder: str, tie: str = "none", ends: float = 4
) -> Bundle:
    """The model is so much surer of the end."""
    bundle = random_bundle(subwords, encoder, decoder, tie=tie, longest=40)
    with torch.no_grad():
        if tie == "none":
            bundle.model.output.bias[END] += ends
        else:
            bundle.model.output.weight[END] *= 2 + ends / 4
    save_bundle(folder, bundle)
    return bundle


@pytest.mark.parametrize("kind", RUN)
@pytest.mark.parametrize("tie", ["none", "target", "all"])
def test_every_transformer_that_it_runs_says_the_same(
    subwords: SubwordTokenizer, tmp_path: Path, kind: str, tie: str
) -> None:
    sources = [[*tokens, END] for tokens in subwords.encode(TEXTS)]
    lengths: set[int] = set()
    for ends in (-3, -2, -1, 0, 1, 2):
        bundle = saved(subwords, tmp_path, kind, kind, tie, ends)
        opened = open_run(tmp_path)
        assert not unsupported_by_ctranslate2(opened.description.model)
        fast, exact = CTranslate2Engine(opened, precision="float32", threads=1), TorchEngine(bundle)
        for how in (
            SearchConfig(1, max_length=20),
            SearchConfig(4, nbest=3, max_length=20, patient=False, length_penalty=0.7),
        ):
            assert not fast.unsupported_reason(how)
            for ours, theirs in zip(exact.search(sources, how), fast.search(sources, how), strict=True):
                if how.beam > 1 and max(len(h.tokens) for h in ours) == 20:
                    continue  # no room for the end, which PyTorch's search pays for
                assert [h.tokens for h in theirs] == [h.tokens for h in ours]
                lengths |= {len(h.tokens) for h in ours}
                for hypothesis in theirs:
                    length = len(hypothesis.tokens)
                    assert hypothesis.log_probability == pytest.approx(hypothesis.score * length**how.length_penalty)
                if len(ours[0].tokens) < 20:
                    assert [h.score for h in theirs] == pytest.approx([h.score for h in ours], abs=1e-3)
    assert len(lengths) > (1 if tie == "none" else 0)


def test_searches_that_it_does_not_have_are_refused(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    saved(subwords, tmp_path, "transformer", "transformer")
    fast = CTranslate2Engine(open_run(tmp_path), threads=1)
    for how in (
        SearchConfig(patient=True),
        SearchConfig(patient=False, coverage_penalty=0.1),
        SearchConfig(4, beam_groups=2, patient=False),
        SearchConfig(1, no_repeat_ngram=2),
        SearchConfig(1, forbidden=("a",)),
        SearchConfig(1, sampling=Sampling()),
    ):
        assert fast.unsupported_reason(how)
    assert not fast.unsupported_reason(SearchConfig(1))
    assert not fast.unsupported_reason(SearchConfig(patient=False))


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_company_changes_nothing(subwords: SubwordTokenizer, tmp_path: Path, kind: str) -> None:
    saved(subwords, tmp_path, "transformer", "transformer")
    fast = CTranslate2Engine(open_run(tmp_path), precision=kind, threads=1)
    sources = [[*tokens, END] for tokens in subwords.encode(TEXTS * 4)]
    for how in (SearchConfig(1, max_length=20), SearchConfig(4, max_length=20, patient=False)):
        together = [found[0].tokens for found in fast.search(sources, how)]
        assert [found[0].tokens for found in fast.search(sources[::-1], how)][::-1] == together
        assert [fast.search([source], how)[0][0].tokens for source in sources] == together


def test_the_engine_is_chosen_and_told(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    for name, part in (("a", ("transformer", "transformer")), ("b", ("recurrent", "transformer"))):
        (tmp_path / name).mkdir()
        saved(subwords, tmp_path / name, *part)
    fast, slow = load(tmp_path / "a", device="cpu"), load(tmp_path / "b", device="cpu")
    assert (fast.run.engine.name, fast.engine_reason) == ("native", "the native engine, int8")
    with native.disabled():
        other = load(tmp_path / "a", device="cpu", precision="int8")
    assert (other.run.engine.name, other.engine_reason) == ("ctranslate2", "CTranslate2, int8")
    assert (slow.run.engine.name, slow.engine_reason) == (
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
    saved(subwords, tmp_path, "transformer", "transformer")
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
