"""Dropout: one mask in C and in PyTorch, forward and backward, for any number of threads."""

from collections.abc import Callable, Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard import native
from regard.models.dropout import Dropout

Operation = Callable[[Dropout, Tensor], Tensor]
OPERATIONS: dict[str, Operation] = {
    "forward": lambda dropout, x: dropout(x),
    "add": lambda dropout, x: dropout.add(x, torch.linspace(-1, 1, x.numel()).view(x.shape)),
    "relu": lambda dropout, x: dropout.relu(x),
}
in_c = pytest.mark.skipif(native.library() is None, reason="no compiler here")


@pytest.fixture(params=OPERATIONS)
def operation(request: pytest.FixtureRequest) -> Operation:
    return OPERATIONS[request.param]


@pytest.fixture
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def bits(x: Tensor) -> Tensor:
    return (x.detach() + 0.0).view(torch.int32)  # + 0 turns -0 into 0


def output_and_gradient_bits(operation: Operation, probability: float, x: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """The output and the gradient of the input, as bits."""
    torch.manual_seed(seed)
    x = x.clone().requires_grad_()
    out = operation(Dropout(probability), x)
    out.backward(torch.linspace(1, 3, x.numel()).view(x.shape))
    assert x.grad is not None
    return bits(out), bits(x.grad)


@in_c
@given(
    shape=st.lists(st.integers(0, 40), min_size=1, max_size=3),
    probability=st.floats(0.001, 0.999),
    seed=st.integers(0, 2**63 - 1),
    name=st.sampled_from(sorted(OPERATIONS)),
)
def test_c_and_pytorch_agree_bit_for_bit(shape: list[int], probability: float, seed: int, name: str) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed % 1000))
    native_bits = output_and_gradient_bits(OPERATIONS[name], probability, x, seed)
    with native.disabled():
        torch_bits = output_and_gradient_bits(OPERATIONS[name], probability, x, seed)
    assert torch.equal(native_bits[0], torch_bits[0])
    assert torch.equal(native_bits[1], torch_bits[1])


@pytest.mark.parametrize("special", [torch.nan, torch.inf, -torch.inf])
def test_non_finite_values_are_kept_or_dropped_but_never_made_finite(
    implementation: str, operation: Operation, special: float
) -> None:
    """A NaN that became 0 would hide that training has diverged."""
    torch.manual_seed(1)
    kept = Dropout(0.4)(torch.ones(1000)) > 0
    torch.manual_seed(1)
    out = operation(Dropout(0.4), torch.full((1000,), special))
    torch.manual_seed(1)
    plain = operation(Dropout(0.4), torch.zeros(1000))
    if operation is OPERATIONS["relu"] and special == -torch.inf:
        assert torch.equal(out, torch.zeros(1000))
        return
    assert not out[kept].isfinite().any()
    assert torch.equal(out[~kept], plain[~kept])


@pytest.mark.parametrize("probability", [0.05, 0.3, 0.5, 0.9])
def test_dropout_rate_and_mean(implementation: str, probability: float) -> None:
    torch.manual_seed(0)
    n = 200_000
    out = Dropout(probability)(torch.ones(n))
    dropped = (out == 0).double().mean().item()
    assert abs(dropped - probability) < 5 * (probability * (1 - probability) / n) ** 0.5
    torch.testing.assert_close(out[out != 0].unique(), torch.tensor([1 / (1 - probability)]))


def test_neighbors_and_calls_are_independent(implementation: str) -> None:
    torch.manual_seed(0)
    first, second = (Dropout(0.5)(torch.ones(100_000)) > 0 for _ in range(2))
    for other in (second, first.roll(1), first.roll(16), first.roll(1024)):
        assert abs((first == other).double().mean().item() - 0.5) < 0.01


@pytest.mark.parametrize("probability", [1 - 2**-20, 1 - 2**-40])
def test_probability_close_to_one_drops_nearly_everything(implementation: str, probability: float) -> None:
    torch.manual_seed(0)
    assert int((Dropout(probability)(torch.ones(5000)) != 0).sum()) < 10


def test_backward_uses_the_same_mask(implementation: str) -> None:
    torch.manual_seed(3)
    x = torch.rand(5, 700).add(0.5).requires_grad_()
    for name, operation in OPERATIONS.items():
        out = operation(Dropout(0.3), x)
        (gradient,) = torch.autograd.grad(out.sum(), x)
        residual_part = operation(Dropout(0.3).eval(), x) - x if name == "add" else 0
        torch.testing.assert_close(gradient * x, (out - residual_part), msg=name)  # linear where x > 0


def test_residual_gradient_is_not_dropped(implementation: str) -> None:
    x, residual = torch.randn(3, 50), torch.randn(3, 50, requires_grad=True)
    g = torch.randn(3, 50)
    Dropout(0.5).add(x, residual).backward(g)
    assert residual.grad is not None
    assert torch.equal(residual.grad, g)


def test_result_is_independent_of_the_number_of_threads(
    implementation: str, operation: Operation, two_threads: None
) -> None:
    x = torch.randn(3, 91_003)  # large enough to be shared, and no multiple of anything
    two = output_and_gradient_bits(operation, 0.3, x, 5)
    torch.set_num_threads(1)
    one = output_and_gradient_bits(operation, 0.3, x, 5)
    assert torch.equal(one[0], two[0])
    assert torch.equal(one[1], two[1])


def test_dropout_is_reproducible_from_the_seed(implementation: str, operation: Operation) -> None:
    x = torch.randn(4, 300)
    first, again, other = (output_and_gradient_bits(operation, 0.5, x, seed) for seed in (7, 7, 8))
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[0], other[0])


def test_result_is_independent_of_the_memory_layout(implementation: str, operation: Operation) -> None:
    x = torch.randn(30, 40)
    plain = output_and_gradient_bits(operation, 0.5, x, 1)
    transposed = output_and_gradient_bits(operation, 0.5, x.t().contiguous().t(), 1)
    assert torch.equal(plain[0], transposed[0])
    assert torch.equal(plain[1], transposed[1])


@pytest.mark.parametrize("dropout", [Dropout(0.5).eval(), Dropout(0.0)], ids=["evaluation", "share 0"])
def test_evaluation_is_the_identity_and_consumes_no_random_numbers(implementation: str, dropout: Dropout) -> None:
    x, residual = torch.randn(3, 20), torch.randn(3, 20)
    before = torch.get_rng_state()
    assert dropout(x) is x
    assert torch.equal(dropout.add(x, residual), residual + x)
    assert torch.equal(dropout.relu(x), x.clamp_min(0))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_number_types_get_the_same_mask(dtype: torch.dtype) -> None:
    masks = []
    for kind in (torch.float32, dtype):
        torch.manual_seed(2)
        masks.append(Dropout(0.5)(torch.ones(2000, dtype=kind)))
    assert masks[1].dtype == dtype
    assert torch.equal(masks[0] > 0, masks[1] > 0)


@pytest.mark.parametrize("probability", [-0.1, 1.0, 2.0, float("nan")])
def test_invalid_probability_raises(probability: float) -> None:
    with pytest.raises(ValueError, match=r"dropout: .* is not possible"):
        Dropout(probability)


def test_residual_of_another_shape_raises() -> None:
    with pytest.raises(ValueError, match=r"residual: .* does not fit"):
        Dropout(0.5).add(torch.ones(2, 3), torch.ones(3))
