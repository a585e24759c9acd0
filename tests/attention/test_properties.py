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


def output_of(one: Cell, backend: str = "auto", **changes: Any) -> torch.Tensor:
    return attend(one.query, one.key, one.value, backend=backend, **{**one.options, **changes})


@given(cells(extents=["global"], masks=("no", "padding", "rows", "added")), st.sampled_from(BACKENDS), st.randoms())
def test_permuting_keys_with_their_values_changes_nothing(one: Cell, backend: str, random: Any) -> None:
    order = list(range(one.key.shape[2]))
    random.shuffle(order)
    mask = one.options["mask"]
    shuffled = Cell(one.query, one.key[:, :, order], one.value[:, :, order], dict(one.options))
    shuffled.options["mask"] = None if mask is None else mask[..., order]
    torch.testing.assert_close(output_of(shuffled, backend), output_of(one, backend), rtol=1e-9, atol=1e-9)


@given(
    cells(extents=["global", "local-p"], masks=("no", "padding", "rows", "added")),
    st.sampled_from(BACKENDS),
    st.randoms(),
)
def test_permuting_queries_permutes_outputs(one: Cell, backend: str, random: Any) -> None:
    order = list(range(one.query.shape[2]))
    random.shuffle(order)
    mask = one.options["mask"]
    changes = {} if mask is None or mask.shape[-2] == 1 else {"mask": mask[..., order, :]}
    shuffled = Cell(one.query[:, :, order], one.key, one.value, one.options)
    torch.testing.assert_close(
        output_of(shuffled, backend, **changes), output_of(one, backend)[:, :, order], rtol=1e-9, atol=1e-9
    )


@given(cells(), st.sampled_from([*BACKENDS, "reference"]), st.integers(1, 6), st.booleans())
def test_masked_equals_truncated(one: Cell, backend: str, more: int, added: bool) -> None:
    """Keys behind a mask might as well not be there, for the output and for every gradient."""
    Tk = one.key.shape[2]
    key, value = (
        torch.cat([x, torch.randn(*x.shape[:2], more, x.shape[3], dtype=x.dtype)], 2) for x in (one.key, one.value)
    )
    mask = torch.ones(1, 1, 1, Tk + more, dtype=torch.bool)
    mask[..., Tk:] = False
    if added:
        mask = torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf)
    short = output_of(one, backend)
    long = attend(one.query, key, value, backend=backend, **{**one.options, "mask": mask})
    torch.testing.assert_close(long, short, rtol=1e-9, atol=1e-9)
    direction = torch.randn_like(short)
    ours, theirs = (torch.autograd.grad(x, one.tensors, direction, allow_unused=True) for x in (long, short))
    for mine, other in zip(ours, theirs, strict=True):
        if other is not None:
            torch.testing.assert_close(mine, other, rtol=1e-7, atol=1e-8)


@given(
    cells(masks=("padding", "rows")),
    st.sampled_from(BACKENDS),
    st.sampled_from([torch.nan, torch.inf, -torch.inf]),
    st.booleans(),
)
def test_what_is_not_finite_in_masked_places_is_harmless(
    one: Cell, backend: str, poison: float, learning: bool
) -> None:
    mask = one.options["mask"].clone()
    mask[..., -1] = False  # nobody sees the last key
    options = {**one.options, "mask": mask}
    clean = attend(one.query, one.key, one.value, backend=backend, **options)
    key, value = one.key.detach().clone(), one.value.detach().clone()
    key[:, :, -1, 0] = poison
    value[:, :, -1, 1] = poison
    key.requires_grad_(learning)
    value.requires_grad_(learning)
    with torch.set_grad_enabled(learning):
        query = one.query if learning else one.query.detach()
        output = attend(query, key, value, backend=backend, **options)
        torch.testing.assert_close(output, clean, rtol=1e-9, atol=1e-9)
        if learning:
            for slope in torch.autograd.grad(output.sum(), [*one.tensors, key, value], allow_unused=True):
                assert slope is None or slope.isfinite().all()


@given(
    cells(extents=["causal", "causal window", "causal window with global tokens"], queries=6, keys=6),
    st.sampled_from(BACKENDS),
)
def test_a_future_that_is_not_finite_leaves_the_past_alone(one: Cell, backend: str) -> None:
    key, value = one.key.detach().clone(), one.value.detach().clone()
    key[:, :, 4:] = torch.nan
    value[:, :, 5:] = torch.inf
    query = one.query
    output = attend(query, key, value, backend=backend, **one.options)
    torch.testing.assert_close(output[:, :, :4], output_of(one, backend)[:, :, :4], rtol=1e-9, atol=1e-9)
    assert output[:, :, 4:].isnan().all(), "a row that may look at NaN says so"
    if output.requires_grad:
        for slope in torch.autograd.grad(output[:, :, :4].sum(), one.tensors, allow_unused=True):
            assert slope is None or slope.isfinite().all()


@given(cells(), st.sampled_from([*BACKENDS, "reference"]), st.booleans())
def test_a_row_with_nothing_to_attend_gives_zeros_and_finite_gradients(one: Cell, backend: str, added: bool) -> None:
    mask = torch.ones(one.query.shape[2], one.key.shape[2], dtype=torch.bool)
    mask[0] = False
    if added:
        mask = torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf)
    output = output_of(one, backend, mask=mask)
    assert (output[:, :, 0] == 0).all()
    for slope in torch.autograd.grad(output.sum(), one.tensors, allow_unused=True):
        assert slope is None or slope.isfinite().all()
    _, w = attend(one.query, one.key, one.value, need_weights=True, backend=backend, **{**one.options, "mask": mask})
    assert (w[:, :, 0] == 0).all()


@settings(max_examples=25)
@given(
    cells(
        extents=["causal", "causal window", "causal window with global tokens"], queries=5, keys=5, batch=1, key_heads=4
    ),
    st.sampled_from(BACKENDS),
)
def test_the_jacobian_of_a_causal_extent_is_zero_above_the_diagonal(one: Cell, backend: str) -> None:
    def outputs(key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return attend(one.query, key, value, backend=backend, **one.options).sum((0, 1, 3))  # [Tq]

    by_key, by_value = torch.autograd.functional.jacobian(outputs, (one.key, one.value))  # [Tq, 1, H, Tk, D]
    for jacobian in (by_key, by_value):
        for i in range(5):
            assert (jacobian[i, :, :, i + 1 :] == 0).all()
    assert by_value.abs().sum() > 0


@given(
    cells(extents=POSITIONAL, queries=8, keys=8, masks=("no", "padding")),
    st.sampled_from(BACKENDS),
    st.lists(st.integers(1, 4), min_size=1, max_size=8),
)
def test_rows_taken_apart_by_their_offset_equal_all_at_once(one: Cell, backend: str, sizes: list[int]) -> None:
    whole = output_of(one, backend)
    start = 0
    for size in sizes:
        stop = min(8, start + size)
        part = Cell(one.query[:, :, start:stop], one.key, one.value, one.options)
        if stop > start:
            torch.testing.assert_close(
                output_of(part, backend, offset=start), whole[:, :, start:stop], rtol=1e-9, atol=1e-9
            )
        start = stop


@given(cells(extents=["global"], masks=("no", "padding")), st.sampled_from([*BACKENDS, "window"]))
def test_a_window_as_wide_as_the_sequence_equals_global(one: Cell, backend: str) -> None:
    radius = max(one.query.shape[2], one.key.shape[2])
    try:
        wide = output_of(one, backend, extent=Window(radius))
    except ValueError as refusal:
        assert backend == "window", refusal
        return
    torch.testing.assert_close(wide, output_of(one), rtol=1e-9, atol=1e-9)
    causal = output_of(one, extent="causal")
    torch.testing.assert_close(
        output_of(one, backend, extent=Window(radius, causal=True)), causal, rtol=1e-9, atol=1e-9
    )


@given(st.integers(0, 10_000), st.floats(-50, 50), st.sampled_from(["softmax", "sparsemax", "entmax"]))
def test_a_constant_added_to_all_scores_changes_nothing(seed: int, shift: float, normalize: str) -> None:
    one = cell("dot", "global", "softmax", seed=seed)
    plain = weights(one.query, one.key, normalize=normalize)
    moved = weights(one.query, one.key, normalize=normalize, mask=torch.full((1, 1), shift, dtype=torch.float64))
    torch.testing.assert_close(moved, plain, rtol=1e-8, atol=1e-10)


@given(st.integers(0, 10_000))
def test_entmax_tends_to_softmax_as_alpha_tends_to_one(seed: int) -> None:
    one = cell("scaled-dot", "global", "softmax", seed=seed)
    soft = weights(one.query, one.key)
    distances = [
        (weights(one.query, one.key, normalize=Entmax(alpha)) - soft).abs().max().item() for alpha in (1.1, 1.01, 1.001)
    ]
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 2e-3


@given(cells(masks=("no", "padding", "rows"), extents=[e for e in EXTENTS if e != "local-p"]))
def test_weights_of_distributions_sum_to_one_where_anything_is_allowed(one: Cell) -> None:
    _, w = attend(one.query, one.key, one.value, need_weights=True, **one.options)
    assert (w.detach().isfinite()).all()
    name = one.options["normalize"].name
    if name in ("softmax", "sparsemax", "entmax", "hard"):
        total = w.sum(-1)
        assert ((total - 1).abs() < 1e-9).logical_or(total == 0).all()
        assert (w >= 0).all()


@given(
    st.integers(0, 10_000), st.lists(st.integers(-4, 3), min_size=1, max_size=3), st.integers(0, 6), st.integers(1, 6)
)
def test_wanted_heads_and_rows_are_those_of_all_weights(seed: int, heads: list[int], start: int, size: int) -> None:
    for score, extent, normalize in (("additive", "local-p", "entmax learned"), ("bilinear", "window", "softmax")):
        one = cell(score, extent, normalize, seed=seed, key_heads=2, masked="rows")
        whole = weights(one.query, one.key, **one.options)
        some = weights(one.query, one.key, heads=heads, rows=slice(start, start + size), **one.options)
        torch.testing.assert_close(some, whole[:, heads, start : start + size])


@given(cells(masks=("no", "padding")), st.sampled_from(BACKENDS))
def test_the_output_of_one_example_does_not_depend_on_its_batch(one: Cell, backend: str) -> None:
    whole = output_of(one, backend)
    mask = one.options["mask"]
    for b in range(len(whole)):
        alone = Cell(one.query[b : b + 1], one.key[b : b + 1], one.value[b : b + 1], one.options)
        alone_mask = None if mask is None else mask[b : b + 1]
        torch.testing.assert_close(output_of(alone, backend, mask=alone_mask), whole[b : b + 1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_local_p_finds_its_length_behind_the_mask(backend: str) -> None:
    """Two sentences of different length, padded together, look where they would look alone."""
    one = cell("scaled-dot", "local-p", "softmax", batch=2, keys=9)
    mask = torch.ones(2, 1, 1, 9, dtype=torch.bool)
    mask[1, ..., 5:] = False
    together = output_of(one, backend, mask=mask)
    alone = attend(one.query[1:], one.key[1:, :, :5], one.value[1:, :, :5], backend=backend, **one.options)
    torch.testing.assert_close(together[1:], alone)


def test_local_p_is_luongs_formula_by_hand() -> None:
    extent = LocalPredictive(1, radius=2.0, width=1)
    with torch.no_grad():
        extent.weight.fill_(0.0)
        extent.v.fill_(1.0)  # p = S sigmoid(tanh 0) = S / 2
    query, key = torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 8, 1)
    value = torch.eye(8)[None, None]
    (row,) = attend(query, key, value, score="dot", extent=extent)[0, 0].tolist()
    # p = 4: the window is 2 ... 6, five positions of equal softmax weight 1/5, times exp(-(s - 4)^2 / 2) as sigma = 1.
    gauss = [0.2 * torch.tensor(-((s - 4) ** 2) / 2).exp().item() for s in range(8)]
    expected = [gauss[s] if 2 <= s <= 6 else 0.0 for s in range(8)]
    assert row == pytest.approx(expected)
    assert sum(row) < 1, "not normalized again"


@pytest.mark.parametrize("backend", ["dense", "tiled"])
def test_a_function_with_parameters_of_its_own_learns_in_every_kernel(backend: str) -> None:
    one = cell("dot", "global", "softmax")
    network = torch.nn.Linear(WIDTH, 1, bias=False).double()

    def compare(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        together: torch.Tensor = network(torch.tanh(query[..., :, None, :] + key[..., None, :, :])).squeeze(-1)
        return together

    output = attend(one.query, one.key, one.value, score=compare, backend=backend)
    expected = attend(one.query, one.key, one.value, score=compare, backend="reference")
    direction = torch.randn_like(output)
    (ours,) = torch.autograd.grad(output, [network.weight], direction)
    (theirs,) = torch.autograd.grad(expected, [network.weight], direction)
    torch.testing.assert_close(ours, theirs)


def test_the_concat_form_is_the_additive_score() -> None:
    """v' tanh(W [q; k]) with W cut into its two halves."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 3, 4), torch.randn(2, 1, 5, 6)
    score = Additive(4, 6, 7, bias=False)
    W = torch.cat([score.weight_query[0], score.weight_key[0]], 1)  # [A, Dq + Dk]
    pairs = torch.cat([query[:, :, :, None].expand(-1, -1, -1, 5, -1), key[:, :, None].expand(-1, -1, 3, -1, -1)], -1)
    expected = torch.softmax(torch.tanh(pairs @ W.t()) @ score.v[0], -1)
    torch.testing.assert_close(weights(query, key, score=score), expected)


def test_the_global_extent_is_what_no_extent_is() -> None:
    one = cell("dot", "global", "softmax")
    assert torch.equal(output_of(one, extent=Global()), output_of(replace(one), extent="global"))


@pytest.mark.parametrize("backend", ["auto", "dense", "tiled"])
def test_weights_of_poisoned_keys_have_finite_gradients(backend: str) -> None:
    one = cell("scaled-dot", "global", "softmax", masked="padding")
    key, value = one.key.detach().clone(), one.value.detach().clone()
    key[0, :, -1], value[0, :, -1] = torch.nan, torch.nan
    result = attend(one.query, key, value, need_weights=True, backend=backend, **one.options)
    (slope,) = torch.autograd.grad(result.output.sum() + result.weights.square().sum(), one.query)
    assert slope.isfinite().all()


@pytest.mark.parametrize("backend", ["dense", "reference"])
@pytest.mark.parametrize("extent", ["global", "causal", "window", "local-p"])
def test_functional_transforms_work_where_it_is_said(backend: str, extent: str) -> None:
    for score, normalize in (("additive", "softmax"), ("scaled-dot", "sparsemax"), ("cosine", "entmax-1.3")):
        one = cell(score, extent, normalize, masked="padding", batch=1)

        def total(query: torch.Tensor) -> torch.Tensor:
            return attend(query, one.key.detach(), one.value.detach(), backend=backend, **one.options).square().sum()

        (expected,) = torch.autograd.grad(total(one.query), one.query)
        torch.testing.assert_close(torch.func.grad(total)(one.query.detach()), expected)
        direction = torch.randn_like(one.query)
        tangent = torch.func.jvp(total, (one.query.detach(),), (direction,))[1]
        torch.testing.assert_close(tangent, (expected * direction).sum())


@pytest.mark.parametrize("backend", ["auto", "dense", "tiled"])
def test_a_query_that_is_not_finite_shows_it_unless_it_looks_nowhere(backend: str) -> None:
    one = cell("scaled-dot", "global", "softmax")
    query = one.query.detach().clone()
    query[:, :, 2:4] = torch.nan
    mask = torch.ones(7, 9, dtype=torch.bool)
    mask[3] = False
    mask[0, 0] = False
    for learning in (False, True):
        given = query.clone().requires_grad_(learning)
        output = attend(given, one.key.detach(), one.value.detach(), mask=mask, backend=backend)
        assert output[:, :, 2].isnan().all()
        assert (output[:, :, 3] == 0).all()
        assert output[:, :, [0, 1, 4, 5, 6]].isfinite().all()


def test_compiled_code_is_not_harmed_by_padding_either() -> None:
    torch._dynamo.reset()
    one = cell("scaled-dot", "global", "softmax", masked="padding")
    key = one.key.detach().clone()
    key[0, :, -1] = torch.nan
    expected = output_of(one)
    compiled = torch.compile(lambda q, k, v: attend(q, k, v, **one.options), backend="aot_eager")
    torch.testing.assert_close(compiled(one.query, key, one.value), expected)


def test_places_keep_their_digits_in_half_precision() -> None:
    torch.manual_seed(0)
    extent = LocalPredictive(8, radius=5.0)
    q, k = torch.randn(1, 1, 6, 8), torch.randn(1, 1, 2000, 8)
    seen = weights(q, k, extent=extent) > 0
    half = weights(q.bfloat16(), k.bfloat16(), extent=extent.bfloat16()) > 0
    assert (half.sum(-1) - seen.sum(-1)).abs().max() <= 1


def test_a_zero_vector_has_no_direction_in_any_precision() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        zero = torch.zeros(1, 1, 2, 4, dtype=dtype)
        assert (attend(zero, zero, torch.ones_like(zero), score="cosine") == 1).all()


def test_names_of_positions_fit_scores_that_make_heads() -> None:
    q = torch.randn(2, 1, 5, 8)
    assert attend(q, q, q, score=Additive(8, 8, heads=4, key_heads=1), position="alibi").shape == (2, 4, 5, 8)


@pytest.mark.parametrize("backend", ["auto", "dense", "tiled", "sdpa"])
def test_nan_in_a_float_mask_is_nan_everywhere(backend: str) -> None:
    q = torch.randn(1, 1, 3, 4)
    mask = torch.zeros(3, 3)
    mask[1, 1] = torch.nan
    output = attend(q, q, q, mask=mask, backend=backend)
    assert output[:, :, 1].isnan().all()
    assert output[:, :, [0, 2]].isfinite().all()
