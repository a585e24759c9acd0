"""The fused loss equals PyTorch's cross-entropy for any chunk size, and is not finite where an input is not."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div

from regard import native
from regard.training import label_smoothed_cross_entropy as loss
from regard.training.label_smoothed_cross_entropy import fused_cross_entropy, fused_rdrop

VOCABULARIES = [1, 2, 5, 16, 17, 31, 33, 100]


def random_inputs(
    n: int, width: int, vocabulary: int, bias: bool, seed: int = 0, passes: int = 1
) -> tuple[list[Tensor], Tensor, Any, Tensor]:
    """Features of each pass, weight, bias and targets in float64."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()

    targets = torch.randint(vocabulary, (n,), generator=generator)
    return [draw(n, width) for _ in range(passes)], draw(vocabulary, width), draw(vocabulary) if bias else None, targets


def logits(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return features @ weight.t() if bias is None else features @ weight.t() + bias


def reference_loss(features: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float) -> Tensor:
    return cross_entropy(logits(features, weight, bias), targets, label_smoothing=smoothing, reduction="sum")


def reference_rdrop(
    first: Tensor,
    second: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float,
    rdrop_weight: float,
) -> Tensor:
    p, q = (logits(x, weight, bias).log_softmax(-1) for x in (first, second))
    cross_entropies = sum(reference_loss(x, weight, bias, targets, smoothing) for x in (first, second))
    divergence = kl_div(q, p, reduction="sum", log_target=True) + kl_div(p, q, reduction="sum", log_target=True)
    return (cross_entropies + rdrop_weight * divergence / 2) / 2


def as_float32(tensors: list[Any]) -> list[Any]:
    return [None if t is None else t.detach().float().requires_grad_() for t in tensors]


def assert_equal_with_gradients(
    actual: Tensor, reference: Tensor, inputs: list[Any], inputs_in_dtype: list[Any], tolerance: float
) -> None:
    """Values and all gradients, with a factor after the loss."""
    torch.testing.assert_close(actual.double(), reference, rtol=tolerance, atol=tolerance)
    expected = torch.autograd.grad(reference * 0.7, [t for t in inputs if t is not None])
    result = torch.autograd.grad(actual * 0.7, [t for t in inputs_in_dtype if t is not None])
    for a, b in zip(result, expected, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=20 * tolerance, atol=20 * tolerance)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_equals_cross_entropy_with_its_gradients(
    implementation: str, vocabulary: int, smoothing: float, bias: bool, dtype: torch.dtype
) -> None:
    (x,), weight, b, targets = random_inputs(9, 6, vocabulary, bias, seed=vocabulary)
    inputs = [x, weight, b]
    inputs_in_dtype = inputs if dtype == torch.float64 else as_float32(inputs)
    result = fused_cross_entropy(
        inputs_in_dtype[0], inputs_in_dtype[1], inputs_in_dtype[2], targets, smoothing=smoothing
    )
    assert_equal_with_gradients(
        result.total,
        reference_loss(x, weight, b, targets, smoothing),
        inputs,
        inputs_in_dtype,
        1e-10 if dtype == torch.float64 else 2e-6,
    )
    per_token = cross_entropy(logits(x, weight, b), targets, reduction="none")
    torch.testing.assert_close(result.per_token.double(), per_token, rtol=1e-5, atol=1e-5)
    assert not result.per_token.requires_grad


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("rdrop_weight", [0.0, 2.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_rdrop_equals_the_plain_formula(
    implementation: str, vocabulary: int, smoothing: float, rdrop_weight: float, dtype: torch.dtype
) -> None:
    (x, y), weight, b, targets = random_inputs(9, 6, vocabulary, True, seed=vocabulary, passes=2)
    inputs = [x, y, weight, b]
    inputs_in_dtype = inputs if dtype == torch.float64 else as_float32(inputs)
    first, second, w, bias = inputs_in_dtype
    result = fused_rdrop(first, second, w, bias, targets, smoothing=smoothing, rdrop_weight=rdrop_weight)
    reference = reference_rdrop(x, y, weight, b, targets, smoothing, rdrop_weight)
    assert_equal_with_gradients(
        result.total, reference, inputs, inputs_in_dtype, 1e-10 if dtype == torch.float64 else 5e-6
    )
    per_token = sum(cross_entropy(logits(z, weight, b), targets, reduction="none") for z in (x, y)) / 2
    torch.testing.assert_close(result.per_token.double(), per_token, rtol=1e-5, atol=1e-5)


def test_bfloat16_operands_change_little(implementation: str) -> None:
    (x, y), weight, b, targets = random_inputs(40, 6, 33, True, passes=2)
    inputs_in_dtype = as_float32([x, y, weight, b])
    first, second, w, bias = inputs_in_dtype
    expected = reference_loss(x, weight, b, targets, 0.1), reference_rdrop(x, y, weight, b, targets, 0.1, 0.5)
    result = (
        fused_cross_entropy(first, w, bias, targets, smoothing=0.1, bfloat16=True),
        fused_rdrop(first, second, w, bias, targets, smoothing=0.1, rdrop_weight=0.5, bfloat16=True),
    )
    for actual, reference in zip(result, expected, strict=True):
        assert actual.total.dtype == torch.float32
        torch.testing.assert_close(actual.total.double(), reference, rtol=1e-2, atol=0)
        gradients = torch.autograd.grad(actual.total, [first, w, bias])
        for a, c in zip(gradients, torch.autograd.grad(reference, [x, weight, b]), strict=True):
            assert (a - c).norm() < 0.02 * c.norm()
            assert not torch.equal(a.double(), c)


def test_rdrop_of_equal_passes_is_cross_entropy(implementation: str) -> None:
    (x,), weight, b, targets = random_inputs(9, 6, 19, True)
    x, weight, b = as_float32([x, weight, b])
    single_pass = fused_cross_entropy(x, weight, b, targets, smoothing=0.1)
    rdrop = fused_rdrop(x, x, weight, b, targets, smoothing=0.1, rdrop_weight=3.0)
    torch.testing.assert_close(single_pass.total, rdrop.total)
    torch.testing.assert_close(single_pass.per_token, rdrop.per_token)


@given(n=st.integers(1, 70), chunk_rows=st.integers(1, 40), vocabulary=st.integers(1, 40), without_native=st.booleans())
def test_result_is_independent_of_the_chunk_size(
    n: int, chunk_rows: int, vocabulary: int, without_native: bool
) -> None:
    inputs, weight, bias, targets = random_inputs(n, 4, vocabulary, True, seed=n, passes=2)
    inputs_in_dtype = as_float32([*inputs, weight, bias])
    x, y, w, b = inputs_in_dtype
    with pytest.MonkeyPatch.context() as patch, native.disabled() if without_native else torch.enable_grad():
        patch.setattr(loss, "_chunk_rows", lambda _: chunk_rows)
        single_pass = fused_cross_entropy(x, w, b, targets, smoothing=0.1)
        two_passes = fused_rdrop(x, y, w, b, targets, smoothing=0.1, rdrop_weight=0.5)
    assert_equal_with_gradients(
        single_pass.total,
        reference_loss(inputs[0], weight, bias, targets, 0.1),
        [inputs[0], weight, bias],
        [x, w, b],
        1e-5,
    )
    reference = reference_rdrop(inputs[0], inputs[1], weight, bias, targets, 0.1, 0.5)
    assert_equal_with_gradients(two_passes.total, reference, [*inputs, weight, bias], inputs_in_dtype, 1e-5)


def test_result_is_independent_of_the_number_of_threads(implementation: str) -> None:
    (x, y), weight, bias, targets = random_inputs(500, 4, 301, True, passes=2)
    x, y, weight, bias = as_float32([x, y, weight, bias])
    one_thread = fused_cross_entropy(x, weight, bias, targets), fused_rdrop(x, y, weight, bias, targets)
    torch.set_num_threads(2)
    try:
        two_threads = fused_cross_entropy(x, weight, bias, targets), fused_rdrop(x, y, weight, bias, targets)
    finally:
        torch.set_num_threads(1)
    for a, b in zip(one_thread, two_threads, strict=True):
        torch.testing.assert_close(a.per_token, b.per_token, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(a.total, b.total, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shift", [-1e4, 1e4])
def test_large_logits_are_stable(implementation: str, shift: float) -> None:
    (x,), weight, _, targets = random_inputs(5, 4, 21, False)
    x, weight = x.detach().float(), weight.detach().float()
    bias = torch.full((21,), shift)
    result = fused_cross_entropy(x, weight, bias, targets).per_token
    torch.testing.assert_close(result, fused_cross_entropy(x, weight, None, targets).per_token, rtol=0, atol=4e-3)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@given(row=st.integers(0, 4), column=st.integers(0, 20), target=st.integers(0, 20), without_native=st.booleans())
def test_non_finite_logit_never_gives_a_finite_loss(
    smoothing: float, value: float, row: int, column: int, target: int, without_native: bool
) -> None:
    x, y, weight = torch.eye(5), torch.eye(5), torch.randn(21, 5, generator=torch.Generator().manual_seed(0))
    weight[column, row] = value  # the logit [row, column], and NaN in its column's other rows: 0 times it
    targets = torch.full((5,), target)
    with native.disabled() if without_native else torch.enable_grad():
        assert not fused_cross_entropy(x, weight, None, targets, smoothing=smoothing).total.isfinite()
        assert not fused_rdrop(x, y, weight, None, targets, smoothing=smoothing).total.isfinite()


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_non_finite_row_does_not_affect_others(implementation: str, value: float) -> None:
    generator = torch.Generator().manual_seed(0)
    x, weight, targets = torch.randn(6, 5, generator=generator), torch.rand(21, 5, generator=generator), torch.arange(6)
    finite = fused_cross_entropy(x, weight, None, targets)
    x[2, 1] = value
    result = fused_cross_entropy(x, weight, None, targets)
    assert not result.per_token[2].isfinite()
    assert not result.total.isfinite()
    finite_rows = torch.arange(6) != 2
    torch.testing.assert_close(result.per_token[finite_rows], finite.per_token[finite_rows])


def test_no_gradient_is_computed_without_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation runs without gradients: half of the work would be wasted."""
    gradient_flags: list[bool] = []
    original = loss._cross_entropy

    def recording(*inputs: Any) -> None:
        gradient_flags.append(inputs[-1])
        original(*inputs)

    monkeypatch.setattr(loss, "_cross_entropy", recording)
    (x,), weight, bias, targets = random_inputs(4, 3, 7, True)
    fused_cross_entropy(x, weight, bias, targets)
    with torch.no_grad():
        fused_cross_entropy(x, weight, bias, targets)
    with torch.inference_mode():
        fused_cross_entropy(x, weight, bias, targets)
    fused_cross_entropy(x.detach(), weight.detach(), bias.detach(), targets)
    assert gradient_flags == [True, False, False, False]


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (torch.tensor([0, 1, 7]), "between 0 and 6"),
        (torch.tensor([0, -1, 2]), "between 0 and 6"),
        (torch.tensor([0, -100, 2]), "between 0 and 6"),
        (torch.tensor([0, 1]), "expected 3 whole numbers"),
        (torch.tensor([[0, 1, 2]]), "expected 3 whole numbers"),
        (torch.tensor([0.0, 1.0, 2.0]), "expected 3 whole numbers"),
    ],
)
def test_invalid_targets_raise(implementation: str, targets: Tensor, message: str) -> None:
    x, weight = torch.randn(3, 4), torch.randn(7, 4)
    with pytest.raises(ValueError, match=f"^targets: .*{message}"):
        fused_cross_entropy(x, weight, None, targets)
    with pytest.raises(ValueError, match=f"^targets: .*{message}"):
        fused_rdrop(x, x, weight, None, targets)


def test_mismatched_shapes_raise() -> None:
    x, targets = torch.randn(3, 4), torch.tensor([0, 1, 2])
    with pytest.raises(ValueError, match=r"features: .* do not fit"):
        fused_cross_entropy(x, torch.randn(7, 5), None, targets)
    with pytest.raises(ValueError, match=r"second: .* does not fit"):
        fused_rdrop(x, torch.randn(2, 4), torch.randn(7, 4), None, targets)


def test_loss_of_an_empty_batch_is_zero(implementation: str) -> None:
    x, weight = torch.empty(0, 4, requires_grad=True), torch.randn(7, 4, requires_grad=True)
    result = fused_cross_entropy(x, weight, None, torch.empty(0, dtype=torch.int64), smoothing=0.1)
    result.total.backward()
    assert result.total == 0
    assert weight.grad is not None
    assert not weight.grad.any()
