"""Measures of captured attention, against calculations by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.interpret.captured_attention import Axis, CapturedAttention
from regard.interpret.measures import entropy, flow, rollout, statistics
from regard.native import disabled
from tests.views.samples import random_capture

TOKENS = Axis(("▁a", "▁b", "</s>"), (False, False, True))
BEFORE = Axis(("<s>", "▁a", "▁b"), (True, False, False))


def test_statistics_by_hand() -> None:
    one = np.array([[[1, 0, 0], [0.5, 0.5, 0], [0, 0.25, 0.75]]], np.float32)
    (found,) = statistics(CapturedAttention(TOKENS, TOKENS, BEFORE, {"encoder": [one]}))
    bits = [0, 1, 0.25 * 2 + 0.75 * np.log2(4 / 3)]
    assert found.entropy == pytest.approx(np.mean(bits), abs=1e-6)
    assert found.normalized_entropy == pytest.approx(np.mean(bits) / np.log2(3), abs=1e-6)
    assert found.distance == pytest.approx((0 + 0.5 + 0.25) / 3)
    assert found.max_weight == pytest.approx((1 + 0.5 + 0.75) / 3)
    assert found.special_weight == pytest.approx(0.75 / 3)
    (causal,) = statistics(CapturedAttention(TOKENS, TOKENS, BEFORE, {"decoder": [one]}))
    assert causal.normalized_entropy == pytest.approx((0 + 1 + bits[2] / np.log2(3)) / 3, abs=1e-6)
    assert causal.special_weight == pytest.approx((1 + 0.5) / 3)


def test_distance_of_cross_attention_is_from_the_diagonal() -> None:
    source = Axis(tuple("abcde"), (False,) * 5)
    weights = np.zeros((1, 3, 5), np.float32)
    weights[0, [0, 1, 2], [0, 2, 4]] = 1
    (found,) = statistics(CapturedAttention(source, TOKENS, BEFORE, {"cross": [weights]}))
    assert found.distance == 0
    assert found.entropy == 0


def test_rows_of_zeros_have_no_entropy() -> None:
    assert entropy(np.array([[0.0, 0.0], [0.25, 0.25]])).tolist() == [0, 1]


@given(st.integers(0, 99))
def test_rows_of_rollout_sum_to_one(seed: int) -> None:
    captured = random_capture(seed)
    source, before = rollout(captured)
    np.testing.assert_allclose(source.sum(1) + before.sum(1), np.ones(len(captured.target)), atol=1e-5)
    assert not np.triu(before, 1).any(), "the decoder is causal"


def test_rollout_by_hand() -> None:
    """One layer each in encoder and decoder."""
    captured = random_capture(4, layers=1, heads=1)
    encoder = 0.5 * np.eye(len(captured.source)) + 0.5 * captured.weights["encoder"][0][0]
    decoder = 0.5 * np.eye(len(captured.target)) + 0.5 * captured.weights["decoder"][0][0]
    source, before = rollout(captured)
    np.testing.assert_allclose(source, 0.5 * captured.weights["cross"][0][0] @ encoder, atol=1e-6)
    np.testing.assert_allclose(before, 0.5 * decoder, atol=1e-6)


def test_measures_need_unmodified_attention() -> None:
    for changed in (random_capture(1).merge_words(), random_capture(1).without_special_tokens()):
        for measure in (statistics, rollout, flow):
            with pytest.raises(ValueError, match="as it was captured"):
                measure(changed)


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_flow_equals_networkx(seed: int) -> None:
    captured = random_capture(seed)
    native = flow(captured)
    with disabled():
        python = flow(captured)
    for one, other in zip(native, python, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    last_row = flow(captured, rows=[len(captured.target) - 1])
    np.testing.assert_array_equal(last_row[0][0], native[0][-1])


def test_flow_by_hand() -> None:
    """One layer each: through each encoder position at most the smaller of the two weights."""
    captured = random_capture(4, layers=1, heads=1)
    decoder = 0.5 * np.eye(len(captured.target)) + 0.5 * captured.weights["decoder"][0][0]
    encoder = 0.5 * np.eye(len(captured.source)) + 0.5 * captured.weights["encoder"][0][0]
    cross = 0.5 * captured.weights["cross"][0][0]
    source, before = flow(captured)
    np.testing.assert_allclose(before, 0.5 * decoder, atol=1e-6)
    np.testing.assert_allclose(source, np.minimum(cross[:, :, None], encoder[None]).sum(1), atol=1e-6)
    assert not np.triu(before, 1).any()


@pytest.mark.parametrize(("rows", "error"), [([99], ValueError), ([-1], ValueError), ([1.5], TypeError)])
def test_flow_refuses_rows_that_do_not_exist(rows: list[int], error: type[Exception]) -> None:
    with pytest.raises(error):
        flow(random_capture(1), rows=rows)


def test_flow_needs_a_model_with_attention() -> None:
    captured = random_capture(1)
    with pytest.raises(ValueError, match="does not attend"):
        flow(CapturedAttention(captured.source, captured.target, captured.decoder_input, {}))
    assert [each.shape for each in flow(captured, rows=[])] == [(0, len(captured.source)), (0, len(captured.target))]
