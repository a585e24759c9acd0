"""Engines with a shortlist: only its tokens are generated, and outputs are batch-invariant."""

from pathlib import Path

import numpy as np
import pytest

from regard.alignment.shortlist import Shortlist
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.inference.engines.ctranslate2 import CTranslate2Engine
from regard.inference.engines.torch import TorchEngine
from regard.inference.search_config import SearchConfig
from regard.loading import load
from regard.runs.bundle import save_bundle
from regard.runs.folder import open_run
from regard.special_tokens import EOS
from tests.bundles import LINES, random_bundle

SOURCES = [*LINES[:4], "the dog ran", "cat", "park on the mat"]
CONFIGS = {
    "greedy": SearchConfig(1, max_length=14),
    "beam": SearchConfig(4, nbest=2, max_length=14, patient=False),
    "coverage": SearchConfig(4, max_length=14, coverage_penalty=0.2),
}


def random_shortlist(size: int) -> Shortlist:
    """Each source subword has eight candidates of its own."""
    generator = np.random.default_rng(3)
    rows = [generator.choice(np.arange(4, size), 8, replace=False) for _ in range(size)]
    candidates = np.stack(rows).astype(np.int32)
    candidates[::5, 4:] = -1
    return Shortlist(candidates, np.arange(30, dtype=np.int32))


@pytest.mark.parametrize("decoder", ["bahdanau", "luong input feeding", "convolutional", "transformer", "cho"])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_pytorch_generates_only_shortlisted_tokens_and_is_batch_invariant(
    subwords: SubwordTokenizer, decoder: str, config: SearchConfig
) -> None:
    bundle = random_bundle(subwords, "recurrent", decoder)
    shortlist = random_shortlist(len(subwords))
    engine = TorchEngine(bundle, shortlist)
    sources = [[*tokens, EOS] for tokens in subwords.encode(SOURCES)]
    together = engine.search(sources, config)
    unrestricted = TorchEngine(bundle).search(sources, config)
    for source, found, unrestricted_hypotheses in zip(sources, together, unrestricted, strict=True):
        allowed = set(shortlist.candidates_for(source).tolist())
        assert all(set(h.tokens) <= allowed for h in found)
        (alone,) = engine.search([source], config)
        assert [h.tokens for h in alone] == [h.tokens for h in found]
        assert [h.score for h in alone] == pytest.approx([h.score for h in found], abs=1e-4)
        if all(set(h.tokens) <= allowed for h in unrestricted_hypotheses) and config.beam == 1:
            assert found[0].tokens == unrestricted_hypotheses[0].tokens
    if decoder != "luong input feeding":  # which ends at once, with or without a shortlist
        assert any(f[0].tokens != w[0].tokens for f, w in zip(together, unrestricted, strict=True)), (
            "the shortlist affects outputs"
        )


def test_a_shortlist_of_the_whole_vocabulary_does_not_affect_outputs(subwords: SubwordTokenizer) -> None:
    bundle = random_bundle(subwords, "recurrent", "transformer")
    everything = Shortlist(np.zeros((len(subwords), 1), np.int32), np.arange(len(subwords), dtype=np.int32))
    sources = [[*tokens, EOS] for tokens in subwords.encode(SOURCES)]
    for config in CONFIGS.values():
        restricted = TorchEngine(bundle, everything).search(sources, config)
        full = TorchEngine(bundle).search(sources, config)
        assert [[h.tokens for h in each] for each in restricted] == [[h.tokens for h in each] for each in full]


def test_ctranslate2_with_a_shortlist_gives_the_same_tokens_as_pytorch(
    subwords: SubwordTokenizer, tmp_path: Path
) -> None:
    bundle = random_bundle(subwords, "transformer", "transformer", max_tokens=40)
    shortlist = random_shortlist(len(subwords))
    save_bundle(tmp_path, bundle)
    (tmp_path / "shortlist.safetensors").write_bytes(shortlist.to_bytes())
    engine = CTranslate2Engine(open_run(tmp_path), precision="float32", threads=2, shortlist=True)
    reference = TorchEngine(bundle, shortlist)
    sources = [[*tokens, EOS] for tokens in subwords.encode(SOURCES)]
    for config in (CONFIGS["greedy"], CONFIGS["beam"]):
        for source, expected, found in zip(
            sources, reference.search(sources, config), engine.search(sources, config), strict=True
        ):
            assert set(found[0].tokens) <= set(shortlist.candidates_for(source).tolist())
            if len(expected[0].tokens) < 14 or config.beam == 1:
                assert found[0].tokens == expected[0].tokens


def test_a_run_without_a_shortlist_is_an_error(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    save_bundle(tmp_path, random_bundle(subwords, "transformer", "transformer"))
    with pytest.raises(ValueError, match="it has no shortlist; regard train makes one"):
        load(tmp_path, shortlist=True)
