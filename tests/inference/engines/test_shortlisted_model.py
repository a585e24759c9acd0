"""Engines with a shortlist: only its words are said, and company changes nothing."""

from pathlib import Path

import numpy as np
import pytest

from regard.alignment.shortlist import Shortlist
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.inference.engines.ctranslate2 import CTranslate2Engine
from regard.inference.engines.torch import TorchEngine
from regard.inference.results import SearchConfig
from regard.loading import load
from regard.runs.bundle import save_bundle
from regard.runs.folder import open_run
from regard.special_tokens import END
from tests.bundles import LINES, random_bundle

SOURCES = [*LINES[:4], "the dog ran", "cat", "park on the mat"]
HOWS = {
    "greedy": SearchConfig(1, max_length=14),
    "beam": SearchConfig(4, nbest=2, max_length=14, patient=False),
    "coverage": SearchConfig(4, max_length=14, coverage_penalty=0.2),
}


def some_words(size: int) -> Shortlist:
    """Each source subword has eight candidates of its own."""
    dice = np.random.default_rng(3)
    own = np.stack([dice.choice(np.arange(4, size), 8, replace=False) for _ in range(size)]).astype(np.int32)
    own[::5, 4:] = -1
    return Shortlist(own, np.arange(30, dtype=np.int32))


@pytest.mark.parametrize("decoder", ["bahdanau", "luong input feeding", "convolutional", "transformer", "cho"])
@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
def test_pytorch_says_only_words_of_the_list_in_any_company(
    subwords: SubwordTokenizer, decoder: str, how: SearchConfig
) -> None:
    bundle = random_bundle(subwords, "recurrent", decoder)
    words = some_words(len(subwords))
    engine = TorchEngine(bundle, words)
    sources = [[*tokens, END] for tokens in subwords.encode(SOURCES)]
    together = engine.search(sources, how)
    wider = TorchEngine(bundle).search(sources, how)
    for source, found, free in zip(sources, together, wider, strict=True):
        allowed = set(words.candidates_for(source).tolist())
        assert all(set(h.tokens) <= allowed for h in found)
        (alone,) = engine.search([source], how)
        assert [h.tokens for h in alone] == [h.tokens for h in found]
        assert [h.score for h in alone] == pytest.approx([h.score for h in found], abs=1e-4)
        if all(set(h.tokens) <= allowed for h in free) and how.beam == 1:
            assert found[0].tokens == free[0].tokens
    if decoder != "luong input feeding":  # which ends at once, list or no list
        assert any(f[0].tokens != w[0].tokens for f, w in zip(together, wider, strict=True)), "the list matters"


def test_a_list_of_all_words_changes_nothing(subwords: SubwordTokenizer) -> None:
    bundle = random_bundle(subwords, "recurrent", "transformer")
    everything = Shortlist(np.zeros((len(subwords), 1), np.int32), np.arange(len(subwords), dtype=np.int32))
    sources = [[*tokens, END] for tokens in subwords.encode(SOURCES)]
    for how in HOWS.values():
        narrow, wide = TorchEngine(bundle, everything).search(sources, how), TorchEngine(bundle).search(sources, how)
        assert [[h.tokens for h in each] for each in narrow] == [[h.tokens for h in each] for each in wide]


def test_ctranslate2_says_what_pytorch_says(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    bundle = random_bundle(subwords, "transformer", "transformer", longest=40)
    words = some_words(len(subwords))
    save_bundle(tmp_path, bundle)
    (tmp_path / "shortlist.safetensors").write_bytes(words.to_bytes())
    fast = CTranslate2Engine(open_run(tmp_path), precision="float32", threads=2, shortlist=True)
    exact = TorchEngine(bundle, words)
    sources = [[*tokens, END] for tokens in subwords.encode(SOURCES)]
    for how in (HOWS["greedy"], HOWS["beam"]):
        for source, ours, theirs in zip(sources, exact.search(sources, how), fast.search(sources, how), strict=True):
            assert set(theirs[0].tokens) <= set(words.candidates_for(source).tolist())
            if len(ours[0].tokens) < 14 or how.beam == 1:
                assert theirs[0].tokens == ours[0].tokens


def test_a_run_without_a_list_says_so(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    save_bundle(tmp_path, random_bundle(subwords, "transformer", "transformer"))
    with pytest.raises(ValueError, match="it has no shortlist; regard train makes one"):
        load(tmp_path, shortlist=True)
