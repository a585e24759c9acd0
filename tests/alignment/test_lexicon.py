"""The lexicon: probabilities of translations of subwords, by IBM Model 1."""

import numpy as np
import pytest

from regard.alignment import lexicon as lexicons
from regard.alignment.lexicon import learn_lexicon
from regard.special_tokens import EOS


def test_probabilities_equal_model_1_computed_by_hand() -> None:
    """Two pairs, (a b | x y) and (a | x), by the sums of the paper."""
    pairs = [([4, 5], [6, 7]), ([4], [6])]
    p = {(s, t): 1.0 for s in (4, 5) for t in (6, 7) if (s, t) != (4, 9)}
    for _ in range(lexicons.EM_ITERATIONS):
        expected: dict[tuple[int, int], float] = {}
        for source, target in pairs:
            for t in target:
                total = sum(p[s, t] for s in source)
                for s in source:
                    expected[s, t] = expected.get((s, t), 0) + p[s, t] / total
        p = {
            (s, t): expected.get((s, t), 0) / sum(value for (other, _), value in expected.items() if other == s)
            for s, t in p
        }
    source_of_pair, target_of_pair = np.array([4, 4, 5, 5]), np.array([6, 7, 6, 7])
    pair = np.array([0, 2, 1, 3, 0])
    position = np.array([0, 0, 1, 1, 2])
    probabilities = lexicons._expectation_maximization(pair, position, source_of_pair, 3)
    subwords = zip(source_of_pair.tolist(), target_of_pair.tolist(), strict=True)
    assert probabilities == pytest.approx([p[s, t] for s, t in subwords])
    lexicon = learn_lexicon(pairs, target_vocabulary_size=8)
    assert (lexicon.source.tolist(), lexicon.target.tolist()) == (source_of_pair.tolist(), target_of_pair.tolist())
    assert lexicon.probabilities == pytest.approx(probabilities)
    assert lexicon.lookup([5, 4, 6], [7, 3]) == pytest.approx(np.array([[p[5, 7], p[4, 7], 0], [0, 0, 0]]))
    assert lexicon.counts.tolist() == [0, 0, 0, 0, 0, 0, 2, 1]


def test_a_lexicon_of_no_pairs_is_empty() -> None:
    assert learn_lexicon([], target_vocabulary_size=9).lookup([4, 5], [6]).tolist() == [[0, 0]]


def test_reading_pairs_stops_at_the_limit_of_cooccurrences() -> None:
    read = 0

    def many_pairs():
        nonlocal read
        for _ in range(1000):
            read += 1
            yield [4, 5, 6, EOS], [7, 8, EOS]

    learn_lexicon(many_pairs(), target_vocabulary_size=9, max_cooccurrences=100)
    assert read < 12
