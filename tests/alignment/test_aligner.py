"""Word alignment by attention, the choice of the alignment head, symmetrization."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.alignment.aligner import candidate_heads, find_alignment_head, pharaoh, symmetrize, word_alignment
from regard.alignment.alignment_head import AlignmentHead
from regard.alignment.lexicon import learn_lexicon
from regard.special_tokens import EOS

VOCABULARY = 40


def test_words_align_to_the_source_word_with_the_most_weight_of_their_pieces() -> None:
    source, target = ["▁a", "▁big", "▁dog", "</s>"], ["▁gro", "ßer", "▁Hund", "</s>"]
    weights = np.array([[[0.5, 0.4, 0, 0.1], [0, 0.9, 0, 0.1], [0, 0, 0.2, 0.8], [0, 0, 0, 1]]], np.float32)
    assert word_alignment([weights], source, target) == [(1, 0), (2, 1)], "weight on </s> does not count"
    assert word_alignment([], source, target) == []
    assert word_alignment([weights[:, :1, :1]], ["</s>"], ["</s>"]) == []
    assert pharaoh([(2, 1), (1, 0)]) == "1-0 2-1"


def test_a_shifted_head_takes_the_row_of_the_step_after() -> None:
    layer = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert np.array_equal(AlignmentHead(0, 1, shifted=True).select([layer]), layer[1][[1, 2, 2]])
    assert np.array_equal(AlignmentHead(0, None).select([layer]), layer.mean(0))


def test_candidate_heads_are_distinct() -> None:
    candidates = candidate_heads([2, 1])
    assert len(set(candidates)) == len(candidates) == 2 * (3 + 1)
    assert AlignmentHead(1, 0) not in candidates, "the mean of one head is that head"


@pytest.mark.parametrize("shifted", [False, True])
def test_the_alignment_head_is_found_without_gold_alignments(shifted: bool) -> None:
    rng = np.random.default_rng(3)
    expected = AlignmentHead(1, 2, shifted)
    pairs, examples = [], []
    for _ in range(300):
        source = rng.integers(4, VOCABULARY, 6).tolist()
        order = rng.permutation(6)
        target = [*(source[at] + VOCABULARY for at in order), EOS]
        pairs.append(([*source, EOS], target))
        cross = [rng.dirichlet(np.full(7, 0.3), (4, 7)).astype(np.float32) for _ in range(2)]
        head = np.zeros((7, 7), np.float32)
        head[np.arange(6) + shifted, order] = 1
        head[0 if shifted else 6, 6] = 1
        cross[1][2] = 0.7 * head + 0.3 * cross[1][2]
        examples.append((*pairs[-1], cross))
    lexicon = learn_lexicon(pairs, target_vocabulary_size=2 * VOCABULARY)
    found, means = find_alignment_head(examples, lexicon)
    assert found == expected
    assert len(means) == len(candidate_heads([4, 4]))
    assert find_alignment_head([([4, EOS], [5, EOS], [])], lexicon) == (None, {})


def test_symmetrization_by_hand() -> None:
    """The intersection grows along its diagonal; a link apart from it is added if both its words are unaligned."""
    forward, backward = {(0, 0), (1, 1), (2, 1), (5, 5)}, {(0, 0), (1, 1), (1, 2), (7, 7), (5, 4)}
    assert symmetrize(forward, backward, "intersection") == {(0, 0), (1, 1)}
    assert symmetrize(forward, backward, "union") == forward | backward
    grown = symmetrize(forward, backward, "grow-diag-final-and")
    assert grown == {(0, 0), (1, 1), (2, 1), (1, 2), (5, 5), (7, 7)}, "not 5-4: source word 5 is aligned already"
    assert symmetrize(forward, forward, "grow-diag-final-and") == forward
    assert symmetrize([], [], "union") == set()


@given(*[st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)))] * 2)
def test_symmetrized_links_lie_between_intersection_and_union(
    forward: set[tuple[int, int]], backward: set[tuple[int, int]]
) -> None:
    links = symmetrize(forward, backward, "grow-diag-final-and")
    assert forward & backward <= links <= forward | backward
