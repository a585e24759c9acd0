"""The additive kernel: the same scores as the plain formula, for any numbers, in C and in PyTorch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard import native
from regard.attention.kernels import additive
from regard.attention.kernels.additive import additive_scores


def reference_scores(a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    return (torch.tanh(a[:, :, :, None] + b[:, :, None]) * v[:, None, None]).sum(-1)


def random_inputs(
    scale: float, *, queries: int = 13, keys: int = 18, width: int = 37, seed: int = 0, dtype=torch.float32
) -> list[Tensor]:
    torch.manual_seed(seed)
    a, b = torch.randn(2, 3, queries, width, dtype=dtype) * scale, torch.randn(2, 3, keys, width, dtype=dtype) * scale
    return [x.requires_grad_() for x in (a, b, torch.randn(3, width, dtype=dtype))]


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 0.1, 1.0, 4.0, 10.0, 30.0, 1e3, 1e30])
def test_error_is_at_most_twice_that_of_plain_code_at_any_scale(implementation: str, scale: float) -> None:
    """Scores and gradients, at most twice the error of the plain float32 code."""
    single = random_inputs(scale, queries=30, keys=33, width=64)
    exact = [x.detach().double().requires_grad_() for x in single]
    exact_out, plain, fast = (
        reference_scores(*exact),
        reference_scores(*single),
        additive_scores(*single),
    )
    direction = torch.randn_like(plain)
    gradients = [
        torch.autograd.grad(out, inputs, direction.to(out.dtype))
        for out, inputs in ((exact_out, exact), (plain, single), (fast, single))
    ]
    for name, exact_value, plain_value, fast_value in zip(
        ("scores", "da", "db", "dv"),
        *([o, *s] for o, s in zip((exact_out, plain, fast), gradients, strict=True)),
        strict=True,
    ):
        reference_error, error = (
            (x.double() - exact_value).square().mean().sqrt().item() for x in (plain_value, fast_value)
        )
        assert error <= 2 * reference_error + 1e-8 * exact_value.abs().max().item(), (name, error, reference_error)


@pytest.mark.parametrize("scale", [0.1, 1.0, 60.0])
def test_gradients_in_float64(scale: float) -> None:
    inputs = random_inputs(scale, queries=3, keys=4, width=5, dtype=torch.float64)
    assert torch.autograd.gradcheck(additive_scores, inputs, atol=1e-6)


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 40), st.integers(0, 1000))
def test_any_shape(queries: int, keys: int, width: int, seed: int) -> None:
    """Blocks of queries, keys and lanes leave remainders of every size."""
    a, b, v = random_inputs(1.0, queries=queries, keys=keys, width=width, seed=seed)
    direction = torch.randn(2, 3, queries, keys)
    expected = reference_scores(a, b, v)
    gradients = torch.autograd.grad(expected, [a, b, v], direction)
    for without_native in (False, True):
        with native.disabled() if without_native else torch.enable_grad():
            scores = additive_scores(a, b, v)
            torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-5)
            for actual, reference in zip(torch.autograd.grad(scores, [a, b, v], direction), gradients, strict=True):
                torch.testing.assert_close(actual, reference, rtol=1e-3, atol=1e-4)


def test_opposite_large_numbers_cancel_exactly(implementation: str) -> None:
    """a = 1000 and b = -999: e^2a overflows, tanh(1) must come out all the same."""
    a = torch.full((1, 1, 2, 16), 1000.0)
    b = torch.full((1, 1, 2, 16), -999.0)
    scores = additive_scores(a, b, torch.ones(1, 16))
    torch.testing.assert_close(scores, torch.full((1, 1, 2, 2), 16 * torch.tanh(torch.tensor(1.0)).item()))


def test_at_the_limit_of_the_exponentials(implementation: str) -> None:
    """At |a| = |b| = 40 the product of exponentials overflows or vanishes; tanh is then 1 or -1 to the last bit."""
    a = torch.tensor([40.0, -40.0, 40.0, -40.0]).view(1, 1, 1, 4)
    b = torch.tensor([40.0, -40.0, -40.0, 40.0]).view(1, 1, 1, 4)
    for d, expected in enumerate([1.0, -1.0, 0.0, 0.0]):
        v = torch.zeros(1, 4)
        v[0, d] = 1.0
        assert additive_scores(a, b, v).item() == pytest.approx(expected, abs=1e-6)


def test_nan_propagates_to_its_key_only(implementation: str) -> None:
    a, b, v = random_inputs(1.0)
    b = b.detach().clone()
    b[0, 0, 3, 5] = torch.nan
    scores = additive_scores(a, b, v)
    assert scores[0, 0, :, 3].isnan().all()
    assert scores.isnan().sum() == scores.shape[2]


def test_no_tensor_of_size_queries_by_keys_by_width_is_allocated(implementation: str) -> None:
    """Counted by the allocator: at 256 x 256 x 128 the cube is 33 MB, and no allocation comes near it."""
    a, b, v = (
        x.detach().requires_grad_()
        for x in (torch.randn(1, 1, 256, 128), torch.randn(1, 1, 256, 128), torch.randn(1, 128))
    )
    with torch.profiler.profile(profile_memory=True) as profile:
        additive_scores(a, b, v).sum().backward()
    largest_allocation = max(abs(event.self_cpu_memory_usage) for event in profile.events())
    assert largest_allocation < 256 * 256 * 128 * 4 / 4


def test_result_is_independent_of_the_number_of_threads() -> None:
    if native.library() is None:
        pytest.skip(native.unavailable_reason())
    inputs = random_inputs(1.0, queries=64, keys=64, width=64)
    direction = torch.randn(2, 3, 64, 64)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        scores = additive_scores(*inputs)
        results.append([scores, *torch.autograd.grad(scores, inputs, direction)])
    torch.set_num_threads(1)
    for other_threads in results[1:]:
        assert all(torch.equal(x, y) for x, y in zip(results[0], other_threads, strict=True))


def test_exponentials_at_the_limit_are_finite() -> None:
    largest_allocation = torch.tensor(2 * additive.MAX_FOR_EXP)
    assert largest_allocation.exp().isfinite()
    assert (1 / largest_allocation.exp()) > torch.finfo(torch.float32).tiny


def test_gradients_of_gradients() -> None:
    inputs = random_inputs(1.0, queries=3, keys=4, width=5, dtype=torch.float64)
    assert torch.autograd.gradgradcheck(additive_scores, inputs)
    single = [x.detach().float().requires_grad_() for x in inputs]

    def penalty(inputs: list[Tensor]) -> Tensor:
        gradients = torch.autograd.grad(additive_scores(*inputs).square().sum(), inputs, create_graph=True)
        total = torch.stack([s.square().sum() for s in gradients]).sum()
        return torch.autograd.grad(total, inputs[0])[0].double()

    torch.testing.assert_close(penalty(single), penalty(inputs), rtol=1e-3, atol=1e-3)


def test_forward_mode_and_functional_transforms() -> None:
    tensors = tuple(x.detach() for x in random_inputs(1.0, queries=3, keys=4, width=5, dtype=torch.float64))
    direction = tuple(torch.randn_like(x) for x in tensors)
    tangent = torch.func.jvp(additive_scores, tensors, direction)[1]
    expected = torch.func.jvp(reference_scores, tensors, direction)[1]
    torch.testing.assert_close(tangent, expected)
    actual, reference = (
        torch.func.grad(lambda a, f=f: f(a, *tensors[1:]).sum())(tensors[0])
        for f in (additive_scores, reference_scores)
    )
    torch.testing.assert_close(actual, reference)
