"""The copy mechanism, against a hand calculation and its own loss."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.models.copy_mechanism import copy_cross_entropy, mix_copy_distribution
from regard.models.outputs import CopyDistribution


def test_copy_distribution_equals_a_hand_calculation() -> None:
    """Two tokens generated evenly, three quarters of the mass for copies: token 2 (0.2 + 0.3) and token 3 (0.5)."""
    logits = torch.tensor([[0.0, 0.0, -100.0, -100.0]])
    copied = CopyDistribution(torch.tensor([[0.2, 0.5, 0.3]]), torch.tensor([math.log(0.25 / 0.75)]))
    tokens = torch.tensor([[2, 3, 2]])
    probabilities = mix_copy_distribution(logits, copied, tokens).exp()
    torch.testing.assert_close(probabilities, torch.tensor([[0.125, 0.125, 0.375, 0.375]]), atol=1e-6, rtol=1e-5)
    loss, per_token = copy_cross_entropy(logits, copied, tokens, torch.tensor([3]), smoothing=0.0)
    assert math.isclose(float(per_token[0]), -math.log(0.375), rel_tol=1e-5)
    assert torch.equal(loss, per_token)


@given(seed=st.integers(0, 1000), rows=st.integers(1, 4), positions=st.integers(1, 5))
def test_probabilities_sum_to_one_and_agree_with_the_loss(seed: int, rows: int, positions: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    V = 9
    logits = torch.randn(rows, V, generator=generator)
    weights = torch.rand(rows, positions, generator=generator).softmax(-1)
    copied = CopyDistribution(weights, torch.randn(rows, generator=generator))
    tokens = torch.randint(0, V, (rows, positions), generator=generator)
    logs = mix_copy_distribution(logits, copied, tokens)
    torch.testing.assert_close(logs.exp().sum(-1), torch.ones(rows), atol=1e-5, rtol=1e-5)
    targets = torch.randint(0, V, (rows,), generator=generator)
    _, per_token = copy_cross_entropy(logits, copied, tokens, targets, smoothing=0.1)
    torch.testing.assert_close(per_token, -logs.gather(1, targets[:, None])[:, 0], atol=1e-4, rtol=1e-4)
