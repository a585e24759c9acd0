"""Alignments of words, and the head that shows them best."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.alignment.aligner import best_choice, choices, pharaoh, symmetrised, word_alignment
from regard.alignment.alignment_head import AlignmentHead
from regard.alignment.lexicon import learn
from regard.special_tokens import END

WORDS = 40


def test_words_come_from_where_their_pieces_look_most() -> None:
    source, target = ["▁a", "▁big", "▁dog", "</s>"], ["▁gro", "ßer", "▁Hund", "</s>"]
    weights = np.array([[[0.5, 0.4, 0, 0.1], [0, 0.9, 0, 0.1], [0, 0, 0.2, 0.8], [0, 0, 0, 1]]], np.float32)
    assert word_alignment([weights], source, target) == [(1, 0), (2, 1)], "what looks at the end is no word"
    assert word_alignment([], source, target) == []
    assert word_alignment([weights[:, :1, :1]], ["</s>"], ["</s>"]) == []
    assert pharaoh([(2, 1), (1, 0)]) == "1-0 2-1"


def test_a_shifted_choice_looks_at_the_step_that_has_read_the_word() -> None:
    layer = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert np.array_equal(AlignmentHead(0, 1, shifted=True).of([layer]), layer[1][[1, 2, 2]])
    assert np.array_equal(AlignmentHead(0, None).of([layer]), layer.mean(0))


def test_every_place_is_a_choice_once() -> None:
    found = choices([2, 1])
    assert len(set(found)) == len(found) == 2 * (3 + 1)
    assert AlignmentHead(1, 0) not in found, "the mean of one head is that head"


@pytest.mark.parametrize("shifted", [False, True])
def test_the_head_that_aligns_is_found_without_an_alignment(shifted: bool) -> None:
    dice = np.random.default_rng(3)
    right = AlignmentHead(1, 2, shifted)
    pairs, seen = [], []
    for _ in range(300):
        source = dice.integers(4, WORDS, 6).tolist()
        order = dice.permutation(6)
        target = [*(source[at] + WORDS for at in order), END]
        pairs.append(([*source, END], target))
        cross = [dice.dirichlet(np.full(7, 0.3), (4, 7)).astype(np.float32) for _ in range(2)]
        head = np.zeros((7, 7), np.float32)
        head[np.arange(6) + shifted, order] = 1
        head[0 if shifted else 6, 6] = 1
        cross[1][2] = 0.7 * head + 0.3 * cross[1][2]
        seen.append((*pairs[-1], cross))
    found, means = best_choice(seen, learn(pairs, target_vocabulary=2 * WORDS))
    assert found == right
    assert len(means) == len(choices([4, 4]))
    assert best_choice([([4, END], [5, END], [])], learn(pairs, target_vocabulary=2 * WORDS)) == (None, {})


def test_two_directions_are_made_one() -> None:
    """A block of agreement grows along its diagonal; what stands alone joins if both its words are free."""
    forward, backward = {(0, 0), (1, 1), (2, 1), (5, 5)}, {(0, 0), (1, 1), (1, 2), (7, 7), (5, 4)}
    assert symmetrised(forward, backward, "intersection") == {(0, 0), (1, 1)}
    assert symmetrised(forward, backward, "union") == forward | backward
    grown = symmetrised(forward, backward, "grow-diag-final-and")
    assert grown == {(0, 0), (1, 1), (2, 1), (1, 2), (5, 5), (7, 7)}, "5-4 came too late: 5 is taken"
    assert symmetrised(forward, forward, "grow-diag-final-and") == forward
    assert symmetrised([], [], "union") == set()


@given(*[st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)))] * 2)
def test_what_is_made_of_two_lies_between_both_and_either(
    one: set[tuple[int, int]], other: set[tuple[int, int]]
) -> None:
    found = symmetrised(one, other, "grow-diag-final-and")
    assert one & other <= found <= one | other
