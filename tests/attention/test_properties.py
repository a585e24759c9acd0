"""What must hold for every cell, whatever the numbers: properties, with hypothesis choosing the cell and the sizes."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention import Additive, Entmax, Global, LocalPredictive, Window, attend, weights
from tests.attention.cells import EXTENTS, NORMALIZERS, SCORES, WIDTH, Cell, cell

POSITIONAL = [name for name in EXTENTS if name != "local-p"]
BACKENDS = ["auto", "dense", "tiled"]


@st.composite
def cells(draw: st.DrawFn, /, *, extents: list[str] = EXTENTS, masks: tuple[str, ...] = ("no",), **fixed: Any) -> Cell:
    options = {
        "queries": draw(st.integers(1, 12)),
        "keys": draw(st.integers(1, 12)),
        "batch": draw(st.integers(1, 3)),
        "key_heads": draw(st.sampled_from([1, 2, 4])),
        "seed": draw(st.integers(0, 10_000)),
        "masked": draw(st.sampled_from(masks)),
        **fixed,
    }
    names = [draw(st.sampled_from(axis)) for axis in (SCORES, extents, NORMALIZERS)]
    return cell(*names, **options)


def output_of(case: Cell, backend: str = "auto", **changes: Any) -> torch.Tensor:
    return attend(case.query, case.key, case.value, backend=backend, **{**case.options, **changes})


@given(cells(extents=["global"], masks=("no", "padding", "rows", "added")), st.sampled_from(BACKENDS), st.randoms())
def test_output_is_invariant_to_the_order_of_keys(case: Cell, backend: str, random: Any) -> None:
    order = list(range(case.key.shape[2]))
    random.shuffle(order)
    mask = case.options["mask"]
    shuffled = Cell(case.query, case.key[:, :, order], case.value[:, :, order], dict(case.options))
    shuffled.options["mask"] = None if mask is None else mask[..., order]
    torch.testing.assert_close(output_of(shuffled, backend), output_of(case, backend), rtol=1e-9, atol=1e-9)


@given(
    cells(extents=["global", "local-p"], masks=("no", "padding", "rows", "added")),
    st.sampled_from(BACKENDS),
    st.randoms(),
)
def test_permuting_queries_permutes_outputs(case: Cell, backend: str, random: Any) -> None:
    order = list(range(case.query.shape[2]))
    random.shuffle(order)
    mask = case.options["mask"]
    changes = {} if mask is None or mask.shape[-2] == 1 else {"mask": mask[..., order, :]}
    shuffled = Cell(case.query[:, :, order], case.key, case.value, case.options)
    torch.testing.assert_close(
        output_of(shuffled, backend, **changes), output_of(case, backend)[:, :, order], rtol=1e-9, atol=1e-9
    )


@given(cells(), st.sampled_from([*BACKENDS, "reference"]), st.integers(1, 6), st.booleans())
def test_masked_equals_truncated(case: Cell, backend: str, extra: int, additive: bool) -> None:
    """Keys behind a mask might as well not be there, for the output and for every gradient."""
    Tk = case.key.shape[2]
    key, value = (
        torch.cat([x, torch.randn(*x.shape[:2], extra, x.shape[3], dtype=x.dtype)], 2) for x in (case.key, case.value)
    )
    mask = torch.ones(1, 1, 1, Tk + extra, dtype=torch.bool)
    mask[..., Tk:] = False
    if additive:
        mask = torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf)
    short = output_of(case, backend)
    long = attend(case.query, key, value, backend=backend, **{**case.options, "mask": mask})
    torch.testing.assert_close(long, short, rtol=1e-9, atol=1e-9)
    direction = torch.randn_like(short)
    actual_all, expected_all = (
        torch.autograd.grad(x, case.tensors, direction, allow_unused=True) for x in (long, short)
    )
    for gradient, expected_gradient in zip(actual_all, expected_all, strict=True):
        if expected_gradient is not None:
            torch.testing.assert_close(gradient, expected_gradient, rtol=1e-7, atol=1e-8)


@given(
    cells(masks=("padding", "rows")),
    st.sampled_from(BACKENDS),
    st.sampled_from([torch.nan, torch.inf, -torch.inf]),
    st.booleans(),
)
def test_non_finite_masked_positions_have_no_effect(
    case: Cell, backend: str, non_finite: float, with_gradients: bool
) -> None:
    mask = case.options["mask"].clone()
    mask[..., -1] = False  # nobody sees the last key
    options = {**case.options, "mask": mask}
    clean = attend(case.query, case.key, case.value, backend=backend, **options)
    key, value = case.key.detach().clone(), case.value.detach().clone()
    key[:, :, -1, 0] = non_finite
    value[:, :, -1, 1] = non_finite
    key.requires_grad_(with_gradients)
    value.requires_grad_(with_gradients)
    with torch.set_grad_enabled(with_gradients):
        query = case.query if with_gradients else case.query.detach()
        output = attend(query, key, value, backend=backend, **options)
        torch.testing.assert_close(output, clean, rtol=1e-9, atol=1e-9)
        if with_gradients:
            for gradient in torch.autograd.grad(output.sum(), [*case.tensors, key, value], allow_unused=True):
                assert gradient is None or gradient.isfinite().all()


@given(
    cells(extents=["causal", "causal window", "causal window with global tokens"], queries=6, keys=6),
    st.sampled_from(BACKENDS),
)
def test_non_finite_future_does_not_affect_the_past(case: Cell, backend: str) -> None:
    key, value = case.key.detach().clone(), case.value.detach().clone()
    key[:, :, 4:] = torch.nan
    value[:, :, 5:] = torch.inf
    query = case.query
    output = attend(query, key, value, backend=backend, **case.options)
    torch.testing.assert_close(output[:, :, :4], output_of(case, backend)[:, :, :4], rtol=1e-9, atol=1e-9)
    assert output[:, :, 4:].isnan().all(), "a row that may look at NaN says so"
    if output.requires_grad:
        for gradient in torch.autograd.grad(output[:, :, :4].sum(), case.tensors, allow_unused=True):
            assert gradient is None or gradient.isfinite().all()


@given(cells(), st.sampled_from([*BACKENDS, "reference"]), st.booleans())
def test_fully_masked_row_gives_zeros_and_finite_gradients(case: Cell, backend: str, additive: bool) -> None:
    mask = torch.ones(case.query.shape[2], case.key.shape[2], dtype=torch.bool)
    mask[0] = False
    if additive:
        mask = torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf)
    output = output_of(case, backend, mask=mask)
    assert (output[:, :, 0] == 0).all()
    for gradient in torch.autograd.grad(output.sum(), case.tensors, allow_unused=True):
        assert gradient is None or gradient.isfinite().all()
    _, w = attend(
        case.query, case.key, case.value, need_weights=True, backend=backend, **{**case.options, "mask": mask}
    )
    assert (w[:, :, 0] == 0).all()


@settings(max_examples=25)
@given(
    cells(
        extents=["causal", "causal window", "causal window with global tokens"], queries=5, keys=5, batch=1, key_heads=4
    ),
    st.sampled_from(BACKENDS),
)
def test_causal_jacobian_is_zero_above_the_diagonal(case: Cell, backend: str) -> None:
    def outputs(key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return attend(case.query, key, value, backend=backend, **case.options).sum((0, 1, 3))  # [Tq]

    by_key, by_value = torch.autograd.functional.jacobian(outputs, (case.key, case.value))  # [Tq, 1, H, Tk, D]
    for jacobian in (by_key, by_value):
        for i in range(5):
            assert (jacobian[i, :, :, i + 1 :] == 0).all()
    assert by_value.abs().sum() > 0


@given(
    cells(extents=POSITIONAL, queries=8, keys=8, masks=("no", "padding")),
    st.sampled_from(BACKENDS),
    st.lists(st.integers(1, 4), min_size=1, max_size=8),
)
def test_chunks_with_offset_equal_the_whole(case: Cell, backend: str, sizes: list[int]) -> None:
    full = output_of(case, backend)
    start = 0
    for size in sizes:
        stop = min(8, start + size)
        part = Cell(case.query[:, :, start:stop], case.key, case.value, case.options)
        if stop > start:
            torch.testing.assert_close(
                output_of(part, backend, offset=start), full[:, :, start:stop], rtol=1e-9, atol=1e-9
            )
        start = stop


@given(cells(extents=["global"], masks=("no", "padding")), st.sampled_from([*BACKENDS, "window"]))
def test_window_as_wide_as_the_sequence_equals_global(case: Cell, backend: str) -> None:
    radius = max(case.query.shape[2], case.key.shape[2])
    try:
        wide = output_of(case, backend, extent=Window(radius))
    except ValueError as refusal:
        assert backend == "window", refusal
        return
    torch.testing.assert_close(wide, output_of(case), rtol=1e-9, atol=1e-9)
    causal = output_of(case, extent="causal")
    torch.testing.assert_close(
        output_of(case, backend, extent=Window(radius, causal=True)), causal, rtol=1e-9, atol=1e-9
    )


@given(st.integers(0, 10_000), st.floats(-50, 50), st.sampled_from(["softmax", "sparsemax", "entmax"]))
def test_weights_are_invariant_to_a_constant_added_to_scores(seed: int, shift: float, normalize: str) -> None:
    case = cell("dot", "global", "softmax", seed=seed)
    unshifted = weights(case.query, case.key, normalize=normalize)
    shifted = weights(case.query, case.key, normalize=normalize, mask=torch.full((1, 1), shift, dtype=torch.float64))
    torch.testing.assert_close(shifted, unshifted, rtol=1e-8, atol=1e-10)


@given(st.integers(0, 10_000))
def test_entmax_tends_to_softmax_as_alpha_tends_to_one(seed: int) -> None:
    case = cell("scaled-dot", "global", "softmax", seed=seed)
    soft = weights(case.query, case.key)
    distances = [
        (weights(case.query, case.key, normalize=Entmax(alpha)) - soft).abs().max().item()
        for alpha in (1.1, 1.01, 1.001)
    ]
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 2e-3


@given(cells(masks=("no", "padding", "rows"), extents=[e for e in EXTENTS if e != "local-p"]))
def test_weights_of_distributions_sum_to_one_where_anything_is_allowed(case: Cell) -> None:
    _, w = attend(case.query, case.key, case.value, need_weights=True, **case.options)
    assert (w.detach().isfinite()).all()
    name = case.options["normalize"].name
    if name in ("softmax", "sparsemax", "entmax", "hard"):
        total = w.sum(-1)
        assert ((total - 1).abs() < 1e-9).logical_or(total == 0).all()
        assert (w >= 0).all()


@given(
    st.integers(0, 10_000), st.lists(st.integers(-4, 3), min_size=1, max_size=3), st.integers(0, 6), st.integers(1, 6)
)
def test_selected_heads_and_rows_equal_those_of_all_weights(seed: int, heads: list[int], start: int, size: int) -> None:
    for score, extent, normalize in (("additive", "local-p", "entmax learned"), ("bilinear", "window", "softmax")):
        case = cell(score, extent, normalize, seed=seed, key_heads=2, masked="rows")
        full = weights(case.query, case.key, **case.options)
        selected = weights(case.query, case.key, heads=heads, rows=slice(start, start + size), **case.options)
        torch.testing.assert_close(selected, full[:, heads, start : start + size])


@given(cells(masks=("no", "padding")), st.sampled_from(BACKENDS))
def test_output_is_independent_of_the_batch(case: Cell, backend: str) -> None:
    full = output_of(case, backend)
    mask = case.options["mask"]
    for b in range(len(full)):
        row = Cell(case.query[b : b + 1], case.key[b : b + 1], case.value[b : b + 1], case.options)
        mask_row = None if mask is None else mask[b : b + 1]
        torch.testing.assert_close(output_of(row, backend, mask=mask_row), full[b : b + 1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_local_p_takes_the_length_from_the_mask(backend: str) -> None:
    """Two sentences of different length, padded together, look where they would look alone."""
    case = cell("scaled-dot", "local-p", "softmax", batch=2, keys=9)
    mask = torch.ones(2, 1, 1, 9, dtype=torch.bool)
    mask[1, ..., 5:] = False
    batched = output_of(case, backend, mask=mask)
    single = attend(case.query[1:], case.key[1:, :, :5], case.value[1:, :, :5], backend=backend, **case.options)
    torch.testing.assert_close(batched[1:], single)


def test_local_p_equals_a_hand_calculation() -> None:
    extent = LocalPredictive(1, radius=2.0, width=1)
    with torch.no_grad():
        extent.weight.fill_(0.0)
        extent.v.fill_(1.0)  # p = S sigmoid(tanh 0) = S / 2
    query, key = torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 8, 1)
    value = torch.eye(8)[None, None]
    (row,) = attend(query, key, value, score="dot", extent=extent)[0, 0].tolist()
    # p = 4: the window is 2 ... 6, five positions of equal softmax weight 1/5, times exp(-(s - 4)^2 / 2) as sigma = 1.
    gaussian = [0.2 * torch.tensor(-((s - 4) ** 2) / 2).exp().item() for s in range(8)]
    expected = [gaussian[s] if 2 <= s <= 6 else 0.0 for s in range(8)]
    assert row == pytest.approx(expected)
    assert sum(row) < 1, "not normalized again"


@pytest.mark.parametrize("backend", ["dense", "tiled"])
def test_captured_parameters_get_gradients_in_every_kernel(backend: str) -> None:
    case = cell("dot", "global", "softmax")
    network = torch.nn.Linear(WIDTH, 1, bias=False).double()

    def compare(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        batched: torch.Tensor = network(torch.tanh(query[..., :, None, :] + key[..., None, :, :])).squeeze(-1)
        return batched

    output = attend(case.query, case.key, case.value, score=compare, backend=backend)
    expected = attend(case.query, case.key, case.value, score=compare, backend="reference")
    direction = torch.randn_like(output)
    (actual_gradients,) = torch.autograd.grad(output, [network.weight], direction)
    (expected_gradients,) = torch.autograd.grad(expected, [network.weight], direction)
    torch.testing.assert_close(actual_gradients, expected_gradients)


def test_concat_form_equals_the_additive_score() -> None:
    """v' tanh(W [q; k]) with W cut into its two halves."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 3, 4), torch.randn(2, 1, 5, 6)
    score = Additive(4, 6, 7, bias=False)
    W = torch.cat([score.weight_query[0], score.weight_key[0]], 1)  # [A, Dq + Dk]
    pairs = torch.cat([query[:, :, :, None].expand(-1, -1, -1, 5, -1), key[:, :, None].expand(-1, -1, 3, -1, -1)], -1)
    expected = torch.softmax(torch.tanh(pairs @ W.t()) @ score.v[0], -1)
    torch.testing.assert_close(weights(query, key, score=score), expected)


def test_global_extent_object_equals_its_name() -> None:
    case = cell("dot", "global", "softmax")
    assert torch.equal(output_of(case, extent=Global()), output_of(replace(case), extent="global"))


@pytest.mark.parametrize("backend", ["auto", "dense", "tiled"])
def test_weights_with_non_finite_masked_keys_have_finite_gradients(backend: str) -> None:
    case = cell("scaled-dot", "global", "softmax", masked="padding")
    key, value = case.key.detach().clone(), case.value.detach().clone()
    key[0, :, -1], value[0, :, -1] = torch.nan, torch.nan
    result = attend(case.query, key, value, need_weights=True, backend=backend, **case.options)
    (gradient,) = torch.autograd.grad(result.output.sum() + result.weights.square().sum(), case.query)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("backend", ["dense", "reference"])
@pytest.mark.parametrize("extent", ["global", "causal", "window", "local-p"])
def test_functional_transforms_in_the_documented_kernels(backend: str, extent: str) -> None:
    for score, normalize in (("additive", "softmax"), ("scaled-dot", "sparsemax"), ("cosine", "entmax-1.3")):
        case = cell(score, extent, normalize, masked="padding", batch=1)

        def total(query: torch.Tensor) -> torch.Tensor:
            return attend(query, case.key.detach(), case.value.detach(), backend=backend, **case.options).square().sum()

        (expected,) = torch.autograd.grad(total(case.query), case.query)
        torch.testing.assert_close(torch.func.grad(total)(case.query.detach()), expected)
        direction = torch.randn_like(case.query)
        tangent = torch.func.jvp(total, (case.query.detach(),), (direction,))[1]
        torch.testing.assert_close(tangent, (expected * direction).sum())


@pytest.mark.parametrize("backend", ["auto", "dense", "tiled"])
def test_non_finite_query_gives_nan_unless_fully_masked(backend: str) -> None:
    case = cell("scaled-dot", "global", "softmax")
    query = case.query.detach().clone()
    query[:, :, 2:4] = torch.nan
    mask = torch.ones(7, 9, dtype=torch.bool)
    mask[3] = False
    mask[0, 0] = False
    for with_gradients in (False, True):
        given = query.clone().requires_grad_(with_gradients)
        output = attend(given, case.key.detach(), case.value.detach(), mask=mask, backend=backend)
        assert output[:, :, 2].isnan().all()
        assert (output[:, :, 3] == 0).all()
        assert output[:, :, [0, 1, 4, 5, 6]].isfinite().all()


def test_non_finite_padding_has_no_effect_when_compiled() -> None:
    torch._dynamo.reset()
    case = cell("scaled-dot", "global", "softmax", masked="padding")
    key = case.key.detach().clone()
    key[0, :, -1] = torch.nan
    expected = output_of(case)
    compiled = torch.compile(lambda q, k, v: attend(q, k, v, **case.options), backend="aot_eager")
    torch.testing.assert_close(compiled(case.query, key, case.value), expected)


def test_predicted_positions_keep_their_precision_in_half_precision() -> None:
    torch.manual_seed(0)
    extent = LocalPredictive(8, radius=5.0)
    q, k = torch.randn(1, 1, 6, 8), torch.randn(1, 1, 2000, 8)
    allowed = weights(q, k, extent=extent) > 0
    half_allowed = weights(q.bfloat16(), k.bfloat16(), extent=extent.bfloat16()) > 0
    assert (half_allowed.sum(-1) - allowed.sum(-1)).abs().max() <= 1


def test_cosine_of_zero_vectors_is_zero_in_any_precision() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        zero = torch.zeros(1, 1, 2, 4, dtype=dtype)
        assert (attend(zero, zero, torch.ones_like(zero), score="cosine") == 1).all()


def test_position_by_name_with_a_score_that_makes_heads() -> None:
    q = torch.randn(2, 1, 5, 8)
    assert attend(q, q, q, score=Additive(8, 8, heads=4, key_heads=1), position="alibi").shape == (2, 4, 5, 8)


@pytest.mark.parametrize("backend", ["auto", "dense", "tiled", "sdpa"])
def test_nan_in_a_float_mask_gives_nan_in_every_kernel(backend: str) -> None:
    q = torch.randn(1, 1, 3, 4)
    mask = torch.zeros(3, 3)
    mask[1, 1] = torch.nan
    output = attend(q, q, q, mask=mask, backend=backend)
    assert output[:, :, 1].isnan().all()
    assert output[:, :, [0, 2]].isfinite().all()
