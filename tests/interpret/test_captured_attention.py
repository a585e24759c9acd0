"""Captured attention: by subwords, by words, with and without marks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.alignment.alignment_head import AlignmentHead
from regard.interpret.captured_attention import Axis, CapturedAttention, join_pieces
from tests.views.samples import close, sample


@pytest.mark.parametrize(
    ("labels", "special", "words", "texts"),
    [
        (["▁a", "▁dog", "</s>"], [0, 0, 1], [0, 1, 2], ["a", "dog", "</s>"]),
        (["▁run", "ning", ".", "</s>"], [0, 0, 0, 1], [0, 0, 0, 1], ["running.", "</s>"]),
        (["▁", "我", "爱", "你们", "</s>"], [0, 0, 0, 0, 1], [0, 0, 1, 2, 3], ["我", "爱", "你们", "</s>"]),
        (["<s>", "▁Gr", "<0xC3>", "<0xBC>", "n"], [1, 0, 0, 0, 0], [0, 1, 1, 1, 1], ["<s>", "Grün"]),
        (["▁a", "<0xC3>"], [0, 0], [0, 0], ["a<0xC3>"]),
        (["▁ไป", "บ้าน"], [0, 0], [0, 1], ["ไป", "บ้าน"]),
        (["▁سلا", "م"], [0, 0], [0, 0], ["سلام"]),
        ([], [], [], []),
    ],
)
def test_subwords_make_words(labels: list[str], special: list[int], words: list[int], texts: list[str]) -> None:
    axis = Axis(tuple(labels), tuple(map(bool, special)))
    assert list(axis.word_indices) == words
    assert list(axis.merge_words().labels) == texts
    assert axis.merge_words().merge_words() == axis.merge_words()
    assert axis.merge_words().special.count(True) == sum(special)


@pytest.mark.parametrize(
    ("labels", "special", "words"),
    [
        (["▁a", "▁b", "c", "▁d"], [], True),
        (["▁a", "▁b", "c"], [], False),
        (["a", "b", "c", "d", "</s>"], [4], False),
        (["▁a", "▁b", "c", "<s>", "</s>"], [3, 4], False),
        (["▁a", "▁b", "</s>"], [2], True),
        (["▁a"], [], True),
        ([], [], True),
    ],
)
def test_views_show_tokens_if_merging_leaves_fewer_than_three_words(
    labels: list[str], special: list[int], words: bool
) -> None:
    marks = tuple(index in special for index in range(len(labels)))
    assert Axis(tuple(labels), marks).merges_by_default == words
    assert Axis(tuple(labels), marks, "frames").merges_by_default, "there is nothing to merge"


def test_pieces_that_are_nothing_but_a_blank_can_be_seen() -> None:
    assert join_pieces(["▁"]) == "▁"


@given(st.integers(0, 99))
def test_rows_stay_shares_whatever_is_merged_or_hidden(seed: int) -> None:
    whole = sample(seed)
    for seen in (whole.merge_words(), whole.without_special(), whole.merge_words().without_special()):
        for kind in whole.kinds:
            hidden = seen.hidden_weights.get(kind) or [
                np.zeros(layer.shape[:2], np.float32) for layer in seen.weights[kind]
            ]
            for layer, mass in zip(seen.weights[kind], hidden, strict=True):
                assert layer.shape[1:] == (len(seen.rows(kind)), len(seen.columns(kind)))
                close(layer.sum(-1) + mass, np.ones(layer.shape[:2]), atol=1e-5)


@given(st.integers(0, 99))
def test_merging_and_hiding_may_come_in_any_order(seed: int) -> None:
    one, other = sample(seed).merge_words().without_special(), sample(seed).without_special().merge_words()
    assert (one.source, one.target, one.before) == (other.source, other.target, other.before)
    for kind in one.kinds:
        for a, b in zip(one.weights[kind], other.weights[kind], strict=True):
            close(a, b, atol=1e-5)
        for a, b in zip(one.hidden_weights[kind], other.hidden_weights[kind], strict=True):
            close(a, b, atol=1e-5)
    close(one.alignment_weights, other.alignment_weights, atol=1e-5)
    for over in one.attribution:
        close(one.attribution[over], other.attribution[over], atol=1e-5)


def test_words_by_hand() -> None:
    source = Axis(("▁a", "b", "▁c", "</s>"), (False, False, False, True))
    target = Axis(("▁x", "y", "</s>"), (False, False, True))
    before = Axis(("<s>", "▁x", "y"), (True, False, False))
    weights = np.array([[[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.2, 0.2], [0, 0, 0, 1]]], np.float32)
    seen = CapturedAttention(
        source, target, before, {"cross": [weights]}, alignment_weights=AlignmentHead(0, shifted=True).select([weights])
    )
    words = seen.merge_words()
    assert words.source.labels == ("ab", "c", "</s>")
    close(words.matrix(), [[0.45, 0.25, 0.3], [0, 0, 1]], atol=1e-6)
    close(words.alignment_weights, [[0.3, 0.1, 0.6], [0, 0, 1]], atol=1e-6)
    plain = words.without_special()
    close(plain.matrix(), [[0.45, 0.25]], atol=1e-6)
    close(plain.hidden_weights["cross"][0], [[0.3]], atol=1e-6)


def test_layers_and_heads_are_chosen_or_averaged() -> None:
    seen = sample(1)
    layers = seen.weights["cross"]
    np.testing.assert_array_equal(seen.matrix("cross", 1, 0), layers[1][0])
    close(seen.matrix("cross", 0), layers[0].mean(0), atol=1e-6)
    close(seen.matrix("encoder"), np.mean([e.mean(0) for e in seen.weights["encoder"]], 0), atol=1e-6)
    for wrong, message in (
        ({"layer": 2}, "there are 2"),
        ({"head": 9}, "there is no 9"),
        ({"kind": "cross", "layer": -3}, "-3"),
    ):
        with pytest.raises(ValueError, match=message):
            seen.matrix(**wrong)
    recurrent = CapturedAttention(seen.source, seen.target, seen.before, {"cross": layers})
    assert recurrent.kinds == ["cross"]
    with pytest.raises(ValueError, match="no attention of the kind 'encoder'; it has cross"):
        recurrent.matrix("encoder")


def test_what_does_not_fit_its_places_is_refused() -> None:
    seen = sample(1)
    with pytest.raises(ValueError, match="their places are"):
        CapturedAttention(seen.source, seen.source, seen.before, seen.weights)
    with pytest.raises(ValueError, match="marks of what is special"):
        Axis(("a", "b"), (True,))
    with pytest.raises(ValueError, match="which are not its places"):
        CapturedAttention(
            seen.source, seen.target, seen.before, {}, attribution={"source": np.zeros((1, 1), np.float32)}
        )
    with pytest.raises(ValueError, match="its places are not"):
        CapturedAttention(seen.source, seen.target, seen.before, {}, alignment_weights=np.zeros((1, 1), np.float32))


def test_of_one_head_nothing_is_guessed() -> None:
    one, two = (np.full((heads, 2, 3), 1 / 3, np.float32) for heads in (1, 2))
    assert AlignmentHead.default([one]) == AlignmentHead(0)
    assert AlignmentHead.default([two]) == AlignmentHead(0, guessed=True)
    assert AlignmentHead.default([one, one, one]) == AlignmentHead(1, guessed=True)
