"""The shortlist: what a source word may become."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from regard.alignment.lexicon import learn
from regard.alignment.shortlist import CANDIDATES, FREQUENT, Shortlist, load_shortlist, shortlist_of
from regard.special_tokens import END

WORDS = 400


def pairs(count: int, seed: int = 0) -> list[tuple[list[int], list[int]]]:
    """A language in which word n is word n + 400 in another order, with a particle here and there."""
    dice = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        source = dice.integers(4, WORDS, dice.integers(3, 12)).tolist()
        target = dice.permutation([token + WORDS for token in source]).tolist()
        made.append(([*source, END], [*target, 4 + int(dice.integers(0, 3)), END]))
    return made


def learnt(given: list[tuple[list[int], list[int]]]) -> Shortlist:
    return shortlist_of(learn(given, target_vocabulary=2 * WORDS), source_vocabulary=WORDS)


def test_each_word_has_its_translation_first() -> None:
    found = learnt(pairs(1500))
    assert found.candidates.shape == (WORDS, CANDIDATES)
    right = [found.candidates[word, 0] == word + WORDS for word in range(4, WORDS)]
    assert np.mean(right) > 0.99
    assert {0, 1, 2, 3, 4, 5, 6} <= set(found.always.tolist()), "special entries and what is frequent"
    assert len(found.always) <= FREQUENT + 4


def test_a_sentences_candidates_are_its_own_and_what_is_always_there() -> None:
    found = learnt(pairs(1500))
    for source, target in pairs(50, seed=1):
        candidates = found.of(source)
        assert np.array_equal(candidates, np.unique(candidates))
        assert set(target) <= set(candidates.tolist())
        assert set(found.always.tolist()) <= set(candidates.tolist())
        assert len(candidates) <= len(found.always) + CANDIDATES * len(source)
        assert np.array_equal(candidates, found.of(source[::-1])), "order does not matter"


def test_it_is_saved_and_comes_back(tmp_path: Path) -> None:
    found = learnt(pairs(30))
    path = tmp_path / "shortlist.safetensors"
    sizes = {"source_vocabulary": WORDS, "target_vocabulary": 2 * WORDS}
    assert load_shortlist(path, **sizes) is None
    path.write_bytes(found.as_bytes())
    loaded = load_shortlist(path, **sizes)
    assert loaded is not None
    assert np.array_equal(loaded.candidates, found.candidates)
    assert np.array_equal(loaded.always, found.always)
    for wrong in ({"source_vocabulary": 3}, {"target_vocabulary": 500}):
        with pytest.raises(ValueError, match="it belongs to another model"):
            load_shortlist(path, **{**sizes, **wrong})
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match="it is damaged"):
        load_shortlist(path, **sizes)
    save_file({"candidates": np.full((WORDS, 2), -5, np.int32), "always": np.zeros(2, np.int32)}, path)
    with pytest.raises(ValueError, match="it belongs to another model"):
        load_shortlist(path, **sizes)


def test_nothing_gives_nothing() -> None:
    assert (learnt([]).candidates == -1).all()


def test_special_entries_are_there_whatever_a_file_has() -> None:
    bare = Shortlist(np.array([[7, -1], [-1, -1]], np.int32), np.array([5], np.int32))
    assert bare.of([0]).tolist() == [0, 1, 2, 3, 5, 7]
    assert Shortlist(np.full((1, 1), -1, np.int32), np.zeros(0, np.int32)).of([0]).tolist() == [0, 1, 2, 3]
