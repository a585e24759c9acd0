"""Captured attention: by subwords and by words, with and without special tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.alignment.alignment_head import AlignmentHead
from regard.interpret.captured_attention import Axis, CapturedAttention, join_pieces
from tests.views.samples import assert_close, random_capture


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
def test_subwords_are_merged_into_words(
    labels: list[str], special: list[int], words: list[int], texts: list[str]
) -> None:
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
    is_special = tuple(index in special for index in range(len(labels)))
    assert Axis(tuple(labels), is_special).merges_by_default == words
    assert Axis(tuple(labels), is_special, "frames").merges_by_default, "there is nothing to merge"


def test_pieces_of_only_a_blank_are_visible() -> None:
    assert join_pieces(["▁"]) == "▁"


@given(st.integers(0, 99))
def test_rows_with_hidden_weights_sum_to_one(seed: int) -> None:
    original = random_capture(seed)
    for captured in (
        original.merge_words(),
        original.without_special_tokens(),
        original.merge_words().without_special_tokens(),
    ):
        for kind in original.kinds:
            hidden = captured.hidden_weights.get(kind) or [
                np.zeros(layer.shape[:2], np.float32) for layer in captured.weights[kind]
            ]
            for layer, hidden_sum in zip(captured.weights[kind], hidden, strict=True):
                assert layer.shape[1:] == (len(captured.rows(kind)), len(captured.columns(kind)))
                assert_close(layer.sum(-1) + hidden_sum, np.ones(layer.shape[:2]), atol=1e-5)


@given(st.integers(0, 99))
def test_merging_words_and_removing_special_tokens_commute(seed: int) -> None:
    merged_first, merged_last = (
        random_capture(seed).merge_words().without_special_tokens(),
        random_capture(seed).without_special_tokens().merge_words(),
    )
    assert (merged_first.source, merged_first.target, merged_first.decoder_input) == (
        merged_last.source,
        merged_last.target,
        merged_last.decoder_input,
    )
    for kind in merged_first.kinds:
        for a, b in zip(merged_first.weights[kind], merged_last.weights[kind], strict=True):
            assert_close(a, b, atol=1e-5)
        for a, b in zip(merged_first.hidden_weights[kind], merged_last.hidden_weights[kind], strict=True):
            assert_close(a, b, atol=1e-5)
    assert_close(merged_first.alignment_weights, merged_last.alignment_weights, atol=1e-5)
    for over in merged_first.attribution:
        assert_close(merged_first.attribution[over], merged_last.attribution[over], atol=1e-5)


def test_merged_words_by_hand() -> None:
    source = Axis(("▁a", "b", "▁c", "</s>"), (False, False, False, True))
    target = Axis(("▁x", "y", "</s>"), (False, False, True))
    before = Axis(("<s>", "▁x", "y"), (True, False, False))
    weights = np.array([[[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.2, 0.2], [0, 0, 0, 1]]], np.float32)
    captured = CapturedAttention(
        source, target, before, {"cross": [weights]}, alignment_weights=AlignmentHead(0, shifted=True).select([weights])
    )
    words = captured.merge_words()
    assert words.source.labels == ("ab", "c", "</s>")
    assert_close(words.matrix(), [[0.45, 0.25, 0.3], [0, 0, 1]], atol=1e-6)
    assert_close(words.alignment_weights, [[0.3, 0.1, 0.6], [0, 0, 1]], atol=1e-6)
    plain = words.without_special_tokens()
    assert_close(plain.matrix(), [[0.45, 0.25]], atol=1e-6)
    assert_close(plain.hidden_weights["cross"][0], [[0.3]], atol=1e-6)


def test_layers_and_heads_are_selected_or_averaged() -> None:
    captured = random_capture(1)
    layers = captured.weights["cross"]
    np.testing.assert_array_equal(captured.matrix("cross", 1, 0), layers[1][0])
    assert_close(captured.matrix("cross", 0), layers[0].mean(0), atol=1e-6)
    assert_close(captured.matrix("encoder"), np.mean([e.mean(0) for e in captured.weights["encoder"]], 0), atol=1e-6)
    for arguments, message in (
        ({"layer": 2}, "there are 2"),
        ({"head": 9}, "there is no 9"),
        ({"kind": "cross", "layer": -3}, "-3"),
    ):
        with pytest.raises(ValueError, match=message):
            captured.matrix(**arguments)
    recurrent = CapturedAttention(captured.source, captured.target, captured.decoder_input, {"cross": layers})
    assert recurrent.kinds == ["cross"]
    with pytest.raises(ValueError, match="no attention of the kind 'encoder'; it has cross"):
        recurrent.matrix("encoder")


def test_shapes_that_do_not_match_the_axes_are_refused() -> None:
    captured = random_capture(1)
    with pytest.raises(ValueError, match="their axes"):
        CapturedAttention(captured.source, captured.source, captured.decoder_input, captured.weights)
    with pytest.raises(ValueError, match="flags for special tokens"):
        Axis(("a", "b"), (True,))
    with pytest.raises(ValueError, match="attribution over source has the shape"):
        CapturedAttention(
            captured.source,
            captured.target,
            captured.decoder_input,
            {},
            attribution={"source": np.zeros((1, 1), np.float32)},
        )
    with pytest.raises(ValueError, match="alignment has the shape"):
        CapturedAttention(
            captured.source, captured.target, captured.decoder_input, {}, alignment_weights=np.zeros((1, 1), np.float32)
        )


def test_a_single_head_is_not_a_guess() -> None:
    one, two = (np.full((heads, 2, 3), 1 / 3, np.float32) for heads in (1, 2))
    assert AlignmentHead.default([one]) == AlignmentHead(0)
    assert AlignmentHead.default([two]) == AlignmentHead(0, is_default=True)
    assert AlignmentHead.default([one, one, one]) == AlignmentHead(1, is_default=True)
