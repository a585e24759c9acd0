"""Sparsemax and entmax: exact to the number type, in C and in PyTorch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import native
from regard.attention import Entmax, reference
from regard.attention.kernels.entmax import entmax


@pytest.mark.parametrize("alpha", [1.05, 1.3, 1.5, 2.0, 2.5, 4.0])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e4])
def test_weights_and_gradients_equal_the_reference(implementation: str, alpha: float, scale: float) -> None:
    torch.manual_seed(0)
    scores = (torch.randn(40, 33, dtype=torch.float64) * scale).requires_grad_()
    allowed = torch.ones(40, 33, dtype=torch.bool)
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 2e-5)):
        p = entmax(scores.to(dtype), torch.tensor(alpha, dtype=dtype))
        expected = reference.entmax(scores.to(dtype).double(), allowed, alpha)
        torch.testing.assert_close(p.double(), expected, rtol=tolerance, atol=tolerance)
        direction = torch.randn_like(expected)
        (actual,) = torch.autograd.grad(p, scores, direction.to(dtype), retain_graph=True)
        (gradient,) = torch.autograd.grad(expected, scores, direction, retain_graph=True)
        torch.testing.assert_close(actual, gradient, rtol=2e-3 if dtype == torch.float32 else 1e-6, atol=tolerance * 50)


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 3.0])
def test_gradients_of_scores_and_alpha(alpha: float) -> None:
    torch.manual_seed(0)
    scores = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    learned_alpha = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(entmax, (scores, learned_alpha))
    alpha_per_row = torch.tensor([[alpha], [1.4], [1.9]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(entmax, (scores, alpha_per_row))


@given(
    st.lists(st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=40), min_size=1, max_size=1),
    st.sampled_from([1.2, 1.5, 2.0, 3.0]),
    st.booleans(),
)
def test_weights_are_a_distribution_ordered_like_the_scores(
    rows: list[list[float]], alpha: float, without_native: bool
) -> None:
    scores = torch.tensor(rows)
    with native.disabled() if without_native else torch.enable_grad():
        p = entmax(scores, torch.tensor(alpha))
    assert p.sum(-1).item() == pytest.approx(1, abs=1e-5)
    assert (p >= 0).all()
    order = scores[0].argsort()
    assert (p[0][order].diff() >= -1e-6).all()


def test_equal_scores_get_equal_weights(implementation: str) -> None:
    for alpha in (1.5, 2.0, 1.3):
        p = entmax(torch.zeros(1, 1000), torch.tensor(alpha))
        torch.testing.assert_close(p, torch.full((1, 1000), 1e-3), rtol=1e-4, atol=1e-7)


def test_nan_affects_its_row_only(implementation: str) -> None:
    scores = torch.randn(4, 37)
    scores[2, 36] = torch.nan
    for alpha in (1.5, 2.0, 1.3):
        p = entmax(scores, torch.tensor(alpha))
        assert p[2].isnan().all()
        assert p[[0, 1, 3]].isfinite().all()


def test_result_is_independent_of_the_number_of_threads(implementation: str) -> None:
    scores = torch.randn(64, 2048)
    one_thread = entmax(scores, torch.tensor(1.5))
    torch.set_num_threads(2)
    two_threads = entmax(scores, torch.tensor(1.5))
    torch.set_num_threads(1)
    torch.testing.assert_close(one_thread, two_threads)


@pytest.mark.parametrize("size", [5_000, 20_000, 100_000])
def test_long_flat_rows_sum_to_one(implementation: str, size: int) -> None:
    torch.manual_seed(0)
    scores = torch.randn(3, size) * 1e-5
    for alpha in (1.5, 2.0):
        p = entmax(scores, torch.tensor(alpha))
        torch.testing.assert_close(p.sum(-1), torch.ones(3), rtol=1e-4, atol=1e-4)
        exact = entmax(scores.double(), torch.tensor(alpha))
        torch.testing.assert_close(p.double(), exact, rtol=0.05, atol=1e-7)


@pytest.mark.parametrize("excess", [1e-2, 1e-4, 1e-6, 1e-8])
def test_alpha_close_to_one_is_softmax_in_float32(excess: float) -> None:
    torch.manual_seed(0)
    scores = torch.randn(20, 30)
    for normalize in (Entmax(1 + excess), Entmax(1 + excess, learnable=True)):
        p, _ = normalize.weights(scores[None, None], None)
        torch.testing.assert_close(p[0, 0], torch.softmax(scores, -1), rtol=20 * excess + 1e-4, atol=10 * excess + 1e-5)


def test_large_alpha() -> None:
    for learnable in (False, True):
        p, _ = Entmax(1000.0, learnable=learnable).weights(torch.tensor([[[[1.0, 0.5, 0.0]]]]), None)
        torch.testing.assert_close(p, torch.tensor([[[[1.0, 0.0, 0.0]]]]), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0])
def test_gradients_of_gradients(alpha: float) -> None:
    torch.manual_seed(0)
    scores = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(entmax, (scores, torch.tensor(alpha, dtype=torch.float64)))
    single = scores.detach().float().requires_grad_()

    def penalty(x: torch.Tensor) -> torch.Tensor:
        (gradient,) = torch.autograd.grad(entmax(x, torch.tensor(alpha)).square().sum(), x, create_graph=True)
        (second_gradient,) = torch.autograd.grad(gradient.square().sum(), x)
        return second_gradient.double()

    torch.testing.assert_close(penalty(single), penalty(scores), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0])
def test_forward_mode(alpha: float) -> None:
    torch.manual_seed(0)
    scores, direction = torch.randn(3, 5, dtype=torch.float64), torch.randn(3, 5, dtype=torch.float64)
    tangent = torch.func.jvp(lambda s: entmax(s, torch.tensor(alpha)), (scores,), (direction,))[1]
    step = 1e-6
    expected = (
        entmax(scores + step * direction, torch.tensor(alpha)) - entmax(scores - step * direction, torch.tensor(alpha))
    ) / (2 * step)
    torch.testing.assert_close(tangent, expected, rtol=1e-5, atol=1e-7)
