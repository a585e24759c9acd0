"""The fused loss: PyTorch's cross-entropy, whatever the chunks, and never finite where something is wrong."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div

from regard import native
from regard.models import fused_cross_entropy as loss
from regard.models.fused_cross_entropy import fused_cross_entropy, fused_rdrop

VOCABULARIES = [1, 2, 5, 16, 17, 31, 33, 100]


def numbers(
    n: int, width: int, vocabulary: int, bias: bool, seed: int = 0, passes: int = 1
) -> tuple[list[Tensor], Tensor, Any, Tensor]:
    """Features of each pass, weight, bias and targets in float64."""
    make = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=make).requires_grad_()

    targets = torch.randint(vocabulary, (n,), generator=make)
    return [draw(n, width) for _ in range(passes)], draw(vocabulary, width), draw(vocabulary) if bias else None, targets


def logits(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return features @ weight.t() if bias is None else features @ weight.t() + bias


def plain(features: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float) -> Tensor:
    return cross_entropy(logits(features, weight, bias), targets, label_smoothing=smoothing, reduction="sum")


def plain_agreeing(
    first: Tensor,
    second: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float,
    rdrop_weight: float,
) -> Tensor:
    p, q = (logits(x, weight, bias).log_softmax(-1) for x in (first, second))
    both = sum(plain(x, weight, bias, targets, smoothing) for x in (first, second))
    apart = kl_div(q, p, reduction="sum", log_target=True) + kl_div(p, q, reduction="sum", log_target=True)
    return (both + rdrop_weight * apart / 2) / 2


def single(tensors: list[Any]) -> list[Any]:
    return [None if t is None else t.detach().float().requires_grad_() for t in tensors]


def equal(mine: Tensor, theirs: Tensor, given: list[Any], ours: list[Any], within: float) -> None:
    """Values and all gradients, for a loss that is not simply passed on."""
    torch.testing.assert_close(mine.double(), theirs, rtol=within, atol=within)
    expected = torch.autograd.grad(theirs * 0.7, [t for t in given if t is not None])
    found = torch.autograd.grad(mine * 0.7, [t for t in ours if t is not None])
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=20 * within, atol=20 * within)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_it_is_cross_entropy_with_its_gradients(
    form: str, vocabulary: int, smoothing: float, bias: bool, dtype: torch.dtype
) -> None:
    (x,), weight, b, targets = numbers(9, 6, vocabulary, bias, seed=vocabulary)
    given = [x, weight, b]
    ours = given if dtype == torch.float64 else single(given)
    found = fused_cross_entropy(ours[0], ours[1], ours[2], targets, smoothing=smoothing)
    equal(found.total, plain(x, weight, b, targets, smoothing), given, ours, 1e-10 if dtype == torch.float64 else 2e-6)
    each = cross_entropy(logits(x, weight, b), targets, reduction="none")
    torch.testing.assert_close(found.per_token.double(), each, rtol=1e-5, atol=1e-5)
    assert not found.per_token.requires_grad


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("rdrop_weight", [0.0, 2.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_two_passes_agree_by_the_plain_formula(
    form: str, vocabulary: int, smoothing: float, rdrop_weight: float, dtype: torch.dtype
) -> None:
    (x, y), weight, b, targets = numbers(9, 6, vocabulary, True, seed=vocabulary, passes=2)
    given = [x, y, weight, b]
    ours = given if dtype == torch.float64 else single(given)
    first, second, w, bias = ours
    found = fused_rdrop(first, second, w, bias, targets, smoothing=smoothing, rdrop_weight=rdrop_weight)
    theirs = plain_agreeing(x, y, weight, b, targets, smoothing, rdrop_weight)
    equal(found.total, theirs, given, ours, 1e-10 if dtype == torch.float64 else 5e-6)
    each = sum(cross_entropy(logits(z, weight, b), targets, reduction="none") for z in (x, y)) / 2
    torch.testing.assert_close(found.per_token.double(), each, rtol=1e-5, atol=1e-5)


def test_rounded_operands_round_the_loss_and_little_more(form: str) -> None:
    (x, y), weight, b, targets = numbers(40, 6, 33, True, passes=2)
    ours = single([x, y, weight, b])
    first, second, w, bias = ours
    expected = plain(x, weight, b, targets, 0.1), plain_agreeing(x, y, weight, b, targets, 0.1, 0.5)
    found = (
        fused_cross_entropy(first, w, bias, targets, smoothing=0.1, rounded=True),
        fused_rdrop(first, second, w, bias, targets, smoothing=0.1, rdrop_weight=0.5, rounded=True),
    )
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.total.dtype == torch.float32
        torch.testing.assert_close(mine.total.double(), theirs, rtol=1e-2, atol=0)
        slopes = torch.autograd.grad(mine.total, [first, w, bias])
        for a, c in zip(slopes, torch.autograd.grad(theirs, [x, weight, b]), strict=True):
            assert (a - c).norm() < 0.02 * c.norm()
            assert not torch.equal(a.double(), c)


def test_two_equal_passes_are_one(form: str) -> None:
    (x,), weight, b, targets = numbers(9, 6, 19, True)
    x, weight, b = single([x, weight, b])
    one = fused_cross_entropy(x, weight, b, targets, smoothing=0.1)
    both = fused_rdrop(x, x, weight, b, targets, smoothing=0.1, rdrop_weight=3.0)
    torch.testing.assert_close(one.total, both.total)
    torch.testing.assert_close(one.per_token, both.per_token)


@given(n=st.integers(1, 70), rows=st.integers(1, 40), vocabulary=st.integers(1, 40), off=st.booleans())
def test_chunks_of_any_size_give_the_same(n: int, rows: int, vocabulary: int, off: bool) -> None:
    given, weight, bias, targets = numbers(n, 4, vocabulary, True, seed=n, passes=2)
    ours = single([*given, weight, bias])
    x, y, w, b = ours
    with pytest.MonkeyPatch.context() as patch, native.disabled() if off else torch.enable_grad():
        patch.setattr(loss, "_chunk_rows", lambda _: rows)
        one = fused_cross_entropy(x, w, b, targets, smoothing=0.1)
        two = fused_rdrop(x, y, w, b, targets, smoothing=0.1, rdrop_weight=0.5)
    equal(one.total, plain(given[0], weight, bias, targets, 0.1), [given[0], weight, bias], [x, w, b], 1e-5)
    theirs = plain_agreeing(given[0], given[1], weight, bias, targets, 0.1, 0.5)
    equal(two.total, theirs, [*given, weight, bias], ours, 1e-5)


def test_the_number_of_threads_changes_nothing(form: str) -> None:
    (x, y), weight, bias, targets = numbers(500, 4, 301, True, passes=2)
    x, y, weight, bias = single([x, y, weight, bias])
    one = fused_cross_entropy(x, weight, bias, targets), fused_rdrop(x, y, weight, bias, targets)
    torch.set_num_threads(2)
    try:
        two = fused_cross_entropy(x, weight, bias, targets), fused_rdrop(x, y, weight, bias, targets)
    finally:
        torch.set_num_threads(1)
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a.per_token, b.per_token, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(a.total, b.total, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shift", [-1e4, 1e4])
def test_far_away_logits_are_no_harm(form: str, shift: float) -> None:
    (x,), weight, _, targets = numbers(5, 4, 21, False)
    x, weight = x.detach().float(), weight.detach().float()
    bias = torch.full((21,), shift)
    found = fused_cross_entropy(x, weight, bias, targets).per_token
    torch.testing.assert_close(found, fused_cross_entropy(x, weight, None, targets).per_token, rtol=0, atol=4e-3)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
@given(row=st.integers(0, 4), column=st.integers(0, 20), target=st.integers(0, 20), off=st.booleans())
def test_a_logit_that_is_not_finite_never_gives_a_finite_loss(
    smoothing: float, wrong: float, row: int, column: int, target: int, off: bool
) -> None:
    x, y, weight = torch.eye(5), torch.eye(5), torch.randn(21, 5, generator=torch.Generator().manual_seed(0))
    weight[column, row] = wrong  # the logit [row, column], and NaN in its column's other rows: 0 times it
    targets = torch.full((5,), target)
    with native.disabled() if off else torch.enable_grad():
        assert not fused_cross_entropy(x, weight, None, targets, smoothing=smoothing).total.isfinite()
        assert not fused_rdrop(x, y, weight, None, targets, smoothing=smoothing).total.isfinite()


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
def test_one_row_that_is_not_finite_shows_and_spoils_no_other(form: str, wrong: float) -> None:
    make = torch.Generator().manual_seed(0)
    x, weight, targets = torch.randn(6, 5, generator=make), torch.rand(21, 5, generator=make), torch.arange(6)
    fine = fused_cross_entropy(x, weight, None, targets)
    x[2, 1] = wrong
    found = fused_cross_entropy(x, weight, None, targets)
    assert not found.per_token[2].isfinite()
    assert not found.total.isfinite()
    others = torch.arange(6) != 2
    torch.testing.assert_close(found.per_token[others], fine.per_token[others])


def test_no_gradient_is_computed_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation runs without gradients: half of the work would be for nothing."""
    wanted: list[bool] = []
    original = loss._cross_entropy

    def noted(*given: Any) -> None:
        wanted.append(given[-1])
        original(*given)

    monkeypatch.setattr(loss, "_cross_entropy", noted)
    (x,), weight, bias, targets = numbers(4, 3, 7, True)
    fused_cross_entropy(x, weight, bias, targets)
    with torch.no_grad():
        fused_cross_entropy(x, weight, bias, targets)
    with torch.inference_mode():
        fused_cross_entropy(x, weight, bias, targets)
    fused_cross_entropy(x.detach(), weight.detach(), bias.detach(), targets)
    assert wanted == [True, False, False, False]


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (torch.tensor([0, 1, 7]), "between 0 and 6"),
        (torch.tensor([0, -1, 2]), "between 0 and 6"),
        (torch.tensor([0, -100, 2]), "between 0 and 6"),
        (torch.tensor([0, 1]), "expected 3 whole numbers"),
        (torch.tensor([[0, 1, 2]]), "expected 3 whole numbers"),
        (torch.tensor([0.0, 1.0, 2.0]), "expected 3 whole numbers"),
    ],
)
def test_wrong_targets_are_refused(form: str, targets: Tensor, said: str) -> None:
    x, weight = torch.randn(3, 4), torch.randn(7, 4)
    with pytest.raises(ValueError, match=f"^targets: .*{said}"):
        fused_cross_entropy(x, weight, None, targets)
    with pytest.raises(ValueError, match=f"^targets: .*{said}"):
        fused_rdrop(x, x, weight, None, targets)


def test_shapes_that_do_not_fit_are_refused() -> None:
    x, targets = torch.randn(3, 4), torch.tensor([0, 1, 2])
    with pytest.raises(ValueError, match=r"features: .* do not fit"):
        fused_cross_entropy(x, torch.randn(7, 5), None, targets)
    with pytest.raises(ValueError, match=r"second: .* does not fit"):
        fused_rdrop(x, torch.randn(2, 4), torch.randn(7, 4), None, targets)


def test_nothing_to_lose_is_nothing_lost(form: str) -> None:
    x, weight = torch.empty(0, 4, requires_grad=True), torch.randn(7, 4, requires_grad=True)
    found = fused_cross_entropy(x, weight, None, torch.empty(0, dtype=torch.int64), smoothing=0.1)
    found.total.backward()
    assert found.total == 0
    assert weight.grad is not None
    assert not weight.grad.any()
