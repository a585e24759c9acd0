"""Copying, against a hand calculation and against itself."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.models.copy_mechanism import copy_cross_entropy, mix_copy_distribution
from regard.models.outputs import CopyDistribution


def test_a_hand_calculation() -> None:
    """Two words said evenly, three quarters of the mass for copies, which lie on word 2 (0.2 + 0.3) and on word 3."""
    logits = torch.tensor([[0.0, 0.0, -100.0, -100.0]])
    copied = CopyDistribution(torch.tensor([[0.2, 0.5, 0.3]]), torch.tensor([math.log(0.25 / 0.75)]))
    tokens = torch.tensor([[2, 3, 2]])
    found = mix_copy_distribution(logits, copied, tokens).exp()
    torch.testing.assert_close(found, torch.tensor([[0.125, 0.125, 0.375, 0.375]]), atol=1e-6, rtol=1e-5)
    loss, per_token = copy_cross_entropy(logits, copied, tokens, torch.tensor([3]), smoothing=0.0)
    assert math.isclose(float(per_token[0]), -math.log(0.375), rel_tol=1e-5)
    assert torch.equal(loss, per_token)


@given(seed=st.integers(0, 1000), rows=st.integers(1, 4), places=st.integers(1, 5))
def test_probabilities_sum_to_one_and_the_loss_is_theirs(seed: int, rows: int, places: int) -> None:
    dice = torch.Generator().manual_seed(seed)
    V = 9
    logits = torch.randn(rows, V, generator=dice)
    weights = torch.rand(rows, places, generator=dice).softmax(-1)
    copied = CopyDistribution(weights, torch.randn(rows, generator=dice))
    tokens = torch.randint(0, V, (rows, places), generator=dice)
    logs = mix_copy_distribution(logits, copied, tokens)
    torch.testing.assert_close(logs.exp().sum(-1), torch.ones(rows), atol=1e-5, rtol=1e-5)
    targets = torch.randint(0, V, (rows,), generator=dice)
    _, per_token = copy_cross_entropy(logits, copied, tokens, targets, smoothing=0.1)
    torch.testing.assert_close(per_token, -logs.gather(1, targets[:, None])[:, 0], atol=1e-4, rtol=1e-4)
