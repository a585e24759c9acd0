"""The lexicon: how likely a word is to come of another."""

import numpy as np
import pytest

from regard.alignment import lexicon as lexicons
from regard.alignment.lexicon import learn
from regard.special_tokens import END


def test_chances_are_those_of_model_1_computed_by_hand() -> None:
    """Two pairs, (a b | x y) and (a | x), by the sums of the paper."""
    given = [([4, 5], [6, 7]), ([4], [6])]
    p = {(s, t): 1.0 for s in (4, 5) for t in (6, 7) if (s, t) != (4, 9)}
    for _ in range(lexicons.ROUNDS):
        expected: dict[tuple[int, int], float] = {}
        for source, target in given:
            for t in target:
                whole = sum(p[s, t] for s in source)
                for s in source:
                    expected[s, t] = expected.get((s, t), 0) + p[s, t] / whole
        p = {
            (s, t): expected.get((s, t), 0) / sum(value for (left, _), value in expected.items() if left == s)
            for s, t in p
        }
    left, right = np.array([4, 4, 5, 5]), np.array([6, 7, 6, 7])
    which = np.array([0, 2, 1, 3, 0])
    owner = np.array([0, 0, 1, 1, 2])
    chances = lexicons._explained(which, owner, left, 3)
    assert chances == pytest.approx([p[s, t] for s, t in zip(left.tolist(), right.tolist(), strict=True)])
    found = learn(given, target_vocabulary=8)
    assert (found.source.tolist(), found.target.tolist()) == (left.tolist(), right.tolist())
    assert found.chances == pytest.approx(chances)
    assert found.of([5, 4, 6], [7, 3]) == pytest.approx(np.array([[p[5, 7], p[4, 7], 0], [0, 0, 0]]))
    assert found.counts.tolist() == [0, 0, 0, 0, 0, 0, 2, 1]


def test_nothing_gives_nothing_and_much_is_cut_short() -> None:
    assert learn([], target_vocabulary=9).of([4, 5], [6]).tolist() == [[0, 0]]
    seen = 0

    def many():
        nonlocal seen
        for _ in range(1000):
            seen += 1
            yield [4, 5, 6, END], [7, 8, END]

    learn(many(), target_vocabulary=9, most=100)
    assert seen < 12
