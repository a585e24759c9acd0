"""The shortlist: the candidate target tokens of a source."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from regard.alignment.lexicon import learn_lexicon
from regard.alignment.shortlist import FREQUENT_TOKENS, MAX_CANDIDATES, Shortlist, build_shortlist, load_shortlist
from regard.special_tokens import EOS

VOCABULARY = 400


def synthetic_pairs(count: int, seed: int = 0) -> list[tuple[list[int], list[int]]]:
    """A language in which token n is token n + 400, in another order, with a particle in each sentence."""
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(count):
        source = rng.integers(4, VOCABULARY, rng.integers(3, 12)).tolist()
        target = rng.permutation([token + VOCABULARY for token in source]).tolist()
        pairs.append(([*source, EOS], [*target, 4 + int(rng.integers(0, 3)), EOS]))
    return pairs


def shortlist_of_pairs(pairs: list[tuple[list[int], list[int]]]) -> Shortlist:
    return build_shortlist(
        learn_lexicon(pairs, target_vocabulary_size=2 * VOCABULARY), source_vocabulary_size=VOCABULARY
    )


def test_the_translation_of_a_token_is_its_first_candidate() -> None:
    shortlist = shortlist_of_pairs(synthetic_pairs(1500))
    assert shortlist.candidates.shape == (VOCABULARY, MAX_CANDIDATES)
    correct = [shortlist.candidates[token, 0] == token + VOCABULARY for token in range(4, VOCABULARY)]
    assert np.mean(correct) > 0.99
    assert {0, 1, 2, 3, 4, 5, 6} <= set(shortlist.always.tolist()), "special tokens and frequent ones"
    assert len(shortlist.always) <= FREQUENT_TOKENS + 4


def test_candidates_of_a_source_are_those_of_its_tokens_and_the_frequent_ones() -> None:
    shortlist = shortlist_of_pairs(synthetic_pairs(1500))
    for source, target in synthetic_pairs(50, seed=1):
        candidates = shortlist.candidates_for(source)
        assert np.array_equal(candidates, np.unique(candidates))
        assert set(target) <= set(candidates.tolist())
        assert set(shortlist.always.tolist()) <= set(candidates.tolist())
        assert len(candidates) <= len(shortlist.always) + MAX_CANDIDATES * len(source)
        assert np.array_equal(candidates, shortlist.candidates_for(source[::-1])), "order does not matter"


def test_saving_and_loading_keeps_a_shortlist_and_refuses_damage(tmp_path: Path) -> None:
    shortlist = shortlist_of_pairs(synthetic_pairs(30))
    path = tmp_path / "shortlist.safetensors"
    sizes = {"source_vocabulary_size": VOCABULARY, "target_vocabulary_size": 2 * VOCABULARY}
    assert load_shortlist(path, **sizes) is None
    path.write_bytes(shortlist.to_bytes())
    loaded = load_shortlist(path, **sizes)
    assert loaded is not None
    assert np.array_equal(loaded.candidates, shortlist.candidates)
    assert np.array_equal(loaded.always, shortlist.always)
    for other_size in ({"source_vocabulary_size": 3}, {"target_vocabulary_size": 500}):
        with pytest.raises(ValueError, match="it belongs to another model"):
            load_shortlist(path, **{**sizes, **other_size})
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match="it is damaged"):
        load_shortlist(path, **sizes)
    save_file({"candidates": np.full((VOCABULARY, 2), -5, np.int32), "always": np.zeros(2, np.int32)}, path)
    with pytest.raises(ValueError, match="it belongs to another model"):
        load_shortlist(path, **sizes)


def test_without_pairs_no_token_has_candidates() -> None:
    assert (shortlist_of_pairs([]).candidates == -1).all()


def test_special_tokens_are_always_candidates() -> None:
    bare = Shortlist(np.array([[7, -1], [-1, -1]], np.int32), np.array([5], np.int32))
    assert bare.candidates_for([0]).tolist() == [0, 1, 2, 3, 5, 7]
    assert Shortlist(np.full((1, 1), -1, np.int32), np.zeros(0, np.int32)).candidates_for([0]).tolist() == [0, 1, 2, 3]
