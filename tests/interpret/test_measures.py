"""Numbers about captured attention, against sums by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.interpret.captured_attention import Axis, CapturedAttention
from regard.interpret.measures import entropy, flow, rollout, statistics
from regard.native import disabled
from tests.views.samples import sample

PLACES = Axis(("▁a", "▁b", "</s>"), (False, False, True))
BEFORE = Axis(("<s>", "▁a", "▁b"), (True, False, False))


def test_statistics_by_hand() -> None:
    one = np.array([[[1, 0, 0], [0.5, 0.5, 0], [0, 0.25, 0.75]]], np.float32)
    (found,) = statistics(CapturedAttention(PLACES, PLACES, BEFORE, {"encoder": [one]}))
    bits = [0, 1, 0.25 * 2 + 0.75 * np.log2(4 / 3)]
    assert found.entropy == pytest.approx(np.mean(bits), abs=1e-6)
    assert found.normalized_entropy == pytest.approx(np.mean(bits) / np.log2(3), abs=1e-6)
    assert found.distance == pytest.approx((0 + 0.5 + 0.25) / 3)
    assert found.max_weight == pytest.approx((1 + 0.5 + 0.75) / 3)
    assert found.special_weight == pytest.approx(0.75 / 3)
    (causal,) = statistics(CapturedAttention(PLACES, PLACES, BEFORE, {"decoder": [one]}))
    assert causal.normalized_entropy == pytest.approx((0 + 1 + bits[2] / np.log2(3)) / 3, abs=1e-6)
    assert causal.special_weight == pytest.approx((1 + 0.5) / 3)


def test_distance_to_the_source_is_from_the_diagonal() -> None:
    source = Axis(tuple("abcde"), (False,) * 5)
    weights = np.zeros((1, 3, 5), np.float32)
    weights[0, [0, 1, 2], [0, 2, 4]] = 1
    (found,) = statistics(CapturedAttention(source, PLACES, BEFORE, {"cross": [weights]}))
    assert found.distance == 0
    assert found.entropy == 0


def test_rows_that_give_nothing_have_no_entropy() -> None:
    assert entropy(np.array([[0.0, 0.0], [0.25, 0.25]])).tolist() == [0, 1]


@given(st.integers(0, 99))
def test_rollout_shares_all_of_a_step_among_what_it_read(seed: int) -> None:
    seen = sample(seed)
    source, before = rollout(seen)
    np.testing.assert_allclose(source.sum(1) + before.sum(1), np.ones(len(seen.target)), atol=1e-5)
    assert not np.triu(before, 1).any(), "nothing comes from what is written later"


def test_rollout_by_hand() -> None:
    """One layer each side: the step's half of the source has passed through the encoder."""
    seen = sample(4, layers=1, heads=1)
    encoder = 0.5 * np.eye(len(seen.source)) + 0.5 * seen.weights["encoder"][0][0]
    own = 0.5 * np.eye(len(seen.target)) + 0.5 * seen.weights["decoder"][0][0]
    source, before = rollout(seen)
    np.testing.assert_allclose(source, 0.5 * seen.weights["cross"][0][0] @ encoder, atol=1e-6)
    np.testing.assert_allclose(before, 0.5 * own, atol=1e-6)


def test_measures_want_attention_as_it_was_captured() -> None:
    for changed in (sample(1).merge_words(), sample(1).without_special()):
        for measure in (statistics, rollout, flow):
            with pytest.raises(ValueError, match="as it was captured"):
                measure(changed)


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_flow_is_what_networkx_finds(seed: int) -> None:
    seen = sample(seed)
    fast = flow(seen)
    with disabled():
        slow = flow(seen)
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    some = flow(seen, rows=[len(seen.target) - 1])
    np.testing.assert_array_equal(some[0][0], fast[0][-1])


def test_flow_by_hand() -> None:
    """Through one layer each: what the step lets through to a place of the source, no more than its encoder does."""
    seen = sample(4, layers=1, heads=1)
    own = 0.5 * np.eye(len(seen.target)) + 0.5 * seen.weights["decoder"][0][0]
    encoder = 0.5 * np.eye(len(seen.source)) + 0.5 * seen.weights["encoder"][0][0]
    cross = 0.5 * seen.weights["cross"][0][0]
    source, before = flow(seen)
    np.testing.assert_allclose(before, 0.5 * own, atol=1e-6)
    np.testing.assert_allclose(source, np.minimum(cross[:, :, None], encoder[None]).sum(1), atol=1e-6)
    assert not np.triu(before, 1).any()


@pytest.mark.parametrize(("rows", "error"), [([99], ValueError), ([-1], ValueError), ([1.5], TypeError)])
def test_flow_wants_rows_that_are_there(rows: list[int], error: type[Exception]) -> None:
    with pytest.raises(error):
        flow(sample(1), rows=rows)


def test_nothing_flows_in_a_model_that_does_not_attend() -> None:
    seen = sample(1)
    with pytest.raises(ValueError, match="does not attend"):
        flow(CapturedAttention(seen.source, seen.target, seen.before, {}))
    assert [each.shape for each in flow(seen, rows=[])] == [(0, len(seen.source)), (0, len(seen.target))]
