"""Short attention in C: the reference's numbers and gradients, for every shape and mask that it takes."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard import native
from regard.attention import Additive, Window, attend, plan
from regard.attention.kernels.short import MAX_SIZE

LANES = native.lanes()
pytestmark = pytest.mark.skipif(native.library() is None, reason="no compiler here")


@st.composite
def calls(draw: st.DrawFn) -> tuple[list[Tensor], dict[str, Any]]:
    """Queries, keys and values in float32, and options that short serves."""
    B, G, group_size = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    Tq, Tk = draw(st.integers(1, 11)), draw(st.integers(1, 40) | st.just(MAX_SIZE))
    D, Dv = (LANES * draw(st.integers(1, 2)) for _ in range(2))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1 << 30)))
    sizes = ((B, G * group_size, Tq, D), (B, G, Tk, D), (B, G, Tk, Dv))
    tensors = [torch.randn(size, generator=generator) for size in sizes]
    if draw(st.booleans()):  # heads side by side at each position, as projections leave them
        tensors = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors]
    options: dict[str, Any] = {"scale": draw(st.sampled_from([None, 1.0, -0.7, 0.0, 3.0]))}
    if draw(st.booleans()):
        options |= {"extent": "causal", "offset": draw(st.integers(0, Tk + 2))}
    if draw(st.booleans()):
        rows, fraction = draw(st.sampled_from([1, B])), draw(st.sampled_from([0.0, 0.3, 0.8, 1.0]))
        options["mask"] = torch.rand(rows, 1, 1, Tk, generator=generator) < fraction
    return tensors, options


def run(tensors: list[Tensor], options: dict[str, Any], backend: str, direction: Tensor | None) -> list[Tensor]:
    """The output and, along a direction, all gradients."""
    tensors = [x.detach().requires_grad_() for x in tensors]
    out = attend(*tensors, **options, backend=backend)
    if direction is None:
        return [out.detach()]
    return [out.detach(), *torch.autograd.grad(out, tensors, direction.to(out.dtype))]


def random_direction(tensors: list[Tensor]) -> Tensor:
    q, _, v = tensors
    return torch.randn(*q.shape[:3], v.shape[-1], generator=torch.Generator().manual_seed(0))


def standard_errors(tensors: list[Tensor], options: dict[str, Any], direction: Tensor) -> list[Tensor]:
    """The standard deviation of the rounding error of float32, for each number of the output and of all gradients.

    Every operation changes its result by a factor of 1 ± u at most, u = 2^-24; these errors are taken to be independent
    with a deviation of u. What each of them does to a result is its derivative, so a result's variance is a sum of
    squares. In letters:

        w = softmax(s), s = scale·q·k     o = Σ w v     p = g·v     m = Σ w p     t = scale·w (p − m)
        dq = Σ t k                        dk = Σ t q                dv = Σ w g

    A score s_l that is off by e changes w_j by w_j (1[j=l] − w_l) e: an absolute error of a score is a relative error
    of its weight, which is why no fixed tolerance is right for all scales. A sum of n products has n partial sums, each
    rounded by u: for the scores they are computed, elsewhere their squares are at most n (Σ |x y|)².
    """
    u, smallest = 2.0**-24, 1e-37  # weights smaller than this may become zero
    group_size = tensors[0].shape[1] // tensors[1].shape[1]
    q, g = tensors[0].double(), direction.double()
    k, v = (x.double().repeat_interleave(group_size, 1) for x in tensors[1:])  # [B, H, Tk, width]
    Tq, Tk, Dv = q.shape[2], *v.shape[2:]
    scale = q.shape[-1] ** -0.5 if options["scale"] is None else options["scale"]
    w = attend(q, k, v, **options, need_weights=True, backend="reference").weights  # [B, H, Tq, Tk]
    allowed = w > 0

    products = q[..., :, None, :] * k[..., None, :, :]  # [B, H, Tq, Tk, D]
    s, rounded = scale * products.sum(-1), scale**2 * (products.cumsum(-1).square() + products.square()).sum(-1)
    below_max = s.masked_fill(~allowed, -torch.inf).amax(-1, keepdim=True) - s
    # Of a score: its sum, taking it from the highest, the scale and multiplying by it, and two roundings of exp.
    e = (rounded + 3 * below_max.square() + 4).masked_fill(~allowed, 0)  # variances are in units of u² from here on
    total = Tk + 2  # of the sum of all exp, its reciprocal and multiplying by it: the same for all weights of a row

    def sums(x: Tensor) -> Tensor:
        return x.sum(-1, keepdim=True)

    def shared(x: Tensor) -> Tensor:  # over the heads that have the same keys
        return x.unflatten(1, (-1, group_size)).sum(2)

    w2e = w.square() * e
    w_error = w.square() * ((1 - 2 * w) * e + sums(w2e) + total) + (smallest / u) ** 2
    out = w @ v
    value_change = (v[:, :, None] - out[..., None, :]).square()  # [B, H, Tq, Tk, Dv]: by a weight that rises
    out_error = (w2e[..., None] * value_change).sum(-2) + total * out.square() + Tk * (w @ v.abs()).square()

    p, p_error = g @ v.mT, Dv * (g.abs() @ v.abs().mT).square()
    a = p - sums(w * p)
    m_error = Tk * sums(w * p.abs()).square() + total * sums(w * p).square()
    own_error = p_error + 3 * a.square()  # of p − m by itself, for each key; m is off for all keys alike
    t_error = w.square() * (
        (1 - 4 * w) * a.square() * e
        + (a.square() * sums(w2e) + 2 * a * sums(w2e * a) + sums(w2e * a.square()))
        + (1 - 2 * w) * own_error + sums(w.square() * own_error)
        + total * a.square() + m_error
    ) + (smallest / u * a).square()  # fmt: skip
    t = w * a
    center = w @ k
    distance = k[:, :, None] - center[..., None, :]  # [B, H, Tq, Tk, D]
    score_gradient = a[..., None] * distance - (t @ k)[..., None, :]  # of dq by each score
    q_error = (w2e[..., None] * score_gradient.square()).sum(-2) + (
        (w.square() * own_error)[..., None] * distance.square()
    ).sum(-2)
    q_error += m_error * center.square() + total * (t @ k).square() + Tk * (t.abs() @ k.abs()).square()
    k_error = shared(t_error.mT @ q.square()) + group_size * Tq * shared(t.abs().mT @ q.abs()).square()
    v_error = shared(w_error.mT @ g.square()) + group_size * Tq * shared(w.mT @ g.abs()).square()
    return [u * x.clamp_min(0).sqrt() for x in (out_error, scale**2 * q_error, scale**2 * k_error, v_error)]


@given(calls())
def test_equals_the_reference_with_gradients(call: tuple[list[Tensor], dict[str, Any]]) -> None:
    tensors, options = call
    direction = random_direction(tensors)
    actual = run(tensors, options, "short", direction)
    exact = run([x.double() for x in tensors], options, "reference", direction)
    # Of 295 million numbers tried, none was off by more than 2.3 deviations: most roundings are smaller than u.
    for result, expected, error in zip(actual, exact, standard_errors(tensors, options, direction), strict=True):
        assert result.isfinite().all()
        assert ((result - expected).abs() <= 5 * error).all()


@pytest.mark.parametrize("offset", [None, 0, 1, 2, 3])  # where a row's keys end within a vector, and how rows differ
@pytest.mark.parametrize("keys", [9, 40, MAX_SIZE])
def test_error_is_close_to_that_of_the_dense_kernel(offset: int | None, keys: int) -> None:
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(4, 3, T, 2 * LANES, generator=generator) for T in (40, keys, keys)]
    direction = random_direction(tensors)
    options: dict[str, Any] = {} if offset is None else {"extent": "causal", "offset": offset}
    actual, dense = run(tensors, options, "short", direction), run(tensors, options, "dense", direction)
    exact = run([x.double() for x in tensors], options, "reference", direction)
    for result, plain, truth in zip(actual, dense, exact, strict=True):
        assert (result - truth).square().mean().sqrt() <= 1.5 * (plain - truth).square().mean().sqrt()


@given(calls(), st.sampled_from([torch.nan, torch.inf, -torch.inf]))
def test_non_finite_masked_or_future_keys_have_no_effect(
    call: tuple[list[Tensor], dict[str, Any]], non_finite: float
) -> None:
    tensors, options = call
    (_, _, Tq, _), Tk = tensors[0].shape, tensors[1].shape[2]
    masked = torch.zeros(len(tensors[0]), Tk, dtype=torch.bool)
    if "mask" in options:
        masked |= ~options["mask"][:, 0, 0]
    if options.get("extent") == "causal":
        masked |= torch.arange(Tk) >= Tq + options["offset"]
    direction = random_direction(tensors)
    clean = run(tensors, options, "short", direction)
    q, k, v = tensors
    corrupted = [q, *(x.masked_fill(masked[:, None, :, None], non_finite) for x in (k, v))]
    for actual_value, exact_value in zip(run(corrupted, options, "short", direction), clean, strict=True):
        assert torch.equal(actual_value, exact_value)
    with torch.no_grad():
        assert torch.equal(run(corrupted, options, "short", None)[0], clean[0])


@given(calls(), st.sampled_from([torch.nan, torch.inf, -torch.inf]))
def test_operator_ignores_masked_keys(call: tuple[list[Tensor], dict[str, Any]], non_finite: float) -> None:
    """`attend` clears what is not finite before a kernel sees it; this one needs no such help."""
    tensors, options = call
    causal, offset = "extent" in options, options.get("offset", 0)
    B, Tk = len(tensors[0]), tensors[1].shape[2]
    allowed = options["mask"][:, 0, 0] if "mask" in options else None
    masked = torch.zeros(B, Tk, dtype=torch.bool) if allowed is None else ~allowed
    if causal:  # the last row may see more than the first: only what nobody sees is spoiled
        masked = masked | (torch.arange(Tk) >= tensors[0].shape[2] + offset)
    results = []
    for value in (0.0, non_finite):
        q, k, v = (x.detach().clone() for x in tensors)
        k, v = (x.masked_fill(masked[:, None, :, None].expand(B, 1, Tk, 1), value) for x in (k, v))
        leaves = [x.requires_grad_() for x in (q, k, v)]
        out, _ = torch.ops.regard.short_attention(*leaves, allowed, 0.5, offset, causal)
        results.append([out, *torch.autograd.grad(out, leaves, random_direction(tensors))])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_non_finite_key_affects_only_queries_that_attend_to_it() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 2, 10, LANES, generator=generator) for _ in range(3))
    clean = attend(q, k, v, extent="causal", backend="short")
    for corrupted in (k, v):
        original = corrupted.clone()
        corrupted[:, :, 6] = torch.nan
        actual = attend(q, k, v, extent="causal", backend="short")
        assert torch.equal(actual[:, :, :6], clean[:, :, :6])
        assert actual[:, :, 6:].isnan().all()
        corrupted.copy_(original)


def test_fully_masked_rows_and_their_gradients_are_zero() -> None:
    tensors = [torch.randn(3, 2, 5, LANES) for _ in range(3)]
    mask = torch.tensor([True, False, True])[:, None, None, None].expand(3, 1, 1, 5)
    out, *slopes = run(tensors, {"mask": mask}, "short", torch.ones(3, 2, 5, LANES))
    for x in (out, *slopes):
        assert not x[1].any()
    assert all(x[[0, 2]].any() for x in (out, slopes[2]))


def test_result_is_independent_of_the_number_of_threads() -> None:
    tensors = [torch.randn(16, 4, 40, LANES) for _ in range(3)]
    mask = (torch.arange(40) < torch.arange(16)[:, None] + 20)[:, None, None]
    one_thread = run(tensors, {"mask": mask, "extent": "causal"}, "short", random_direction(tensors))
    torch.set_num_threads(2)
    try:
        two_threads = run(tensors, {"mask": mask, "extent": "causal"}, "short", random_direction(tensors))
    finally:
        torch.set_num_threads(1)
    assert all(torch.equal(a, b) for a, b in zip(one_thread, two_threads, strict=True))


def test_result_is_independent_of_the_batch() -> None:
    tensors = [torch.randn(5, 4, 12, LANES) for _ in range(3)]
    mask = (torch.arange(12) < torch.tensor([12, 3, 7, 1, 9])[:, None])[:, None, None]
    batched = run(tensors, {"mask": mask}, "short", random_direction(tensors))
    for row, length in enumerate([12, 3, 7, 1, 9]):
        q, k, v = (x[row : row + 1] for x in tensors)
        single = run([q, k[:, :, :length], v[:, :, :length]], {}, "short", random_direction(tensors)[row : row + 1])
        assert torch.equal(single[0], batched[0][row : row + 1])
        assert torch.equal(single[1], batched[1][row : row + 1])
        assert torch.equal(single[2], batched[2][row : row + 1, :, :length])


def test_need_weights_does_not_change_the_output() -> None:
    q, k, v = (torch.randn(2, 2, 10, LANES) for _ in range(3))
    with_weights = attend(q, k, v, extent="causal", need_weights=True, backend="short")
    assert torch.equal(with_weights.output, attend(q, k, v, extent="causal", backend="short"))
    torch.testing.assert_close(with_weights.weights @ v, with_weights.output)


def test_cached_steps_equal_the_whole_sequence() -> None:
    q, k, v = (torch.randn(2, 2, 10, LANES) for _ in range(3))
    full = attend(q, k, v, extent="causal", backend="short")
    for position in range(10):
        keys, values = k[:, :, : position + 1], v[:, :, : position + 1]
        step = attend(q[:, :, position : position + 1], keys, values, extent="causal", offset=position, backend="short")
        torch.testing.assert_close(step, full[:, :, position : position + 1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e10])
def test_large_scores_are_stable(size: float) -> None:
    q, k, v = (torch.randn(1, 1, 6, LANES, generator=torch.Generator().manual_seed(3)) for _ in range(3))
    actual = attend(q * size, k, v, backend="short")
    torch.testing.assert_close(actual, attend(q.double() * size, k.double(), v.double()).float(), rtol=1e-3, atol=1e-3)


def test_planner_chooses_short_for_short_sequences() -> None:
    short, single, long_ = (torch.randn(2, 2, T, LANES) for T in (10, 1, 100))
    assert plan(short, short, short).kernel == "short"
    assert plan(single, short, short).kernel != "short"
    assert plan(long_, long_, long_).kernel != "short"
    with native.disabled():
        assert plan(short, short, short).kernel != "short"


def unsupported_calls() -> dict[str, tuple[dict[str, Any], str]]:
    x = torch.randn(2, 2, 5, LANES)
    long_ = torch.randn(2, 2, MAX_SIZE + 1, LANES)
    odd = torch.randn(2, 2, 5, LANES + 1)
    wide = torch.randn(2, 2, 5, MAX_SIZE + LANES)
    empty = torch.randn(2, 2, 0, LANES)
    valid: dict[str, Any] = {"query": x, "key": x, "value": x}
    return {
        "score": ({**valid, "score": Additive(LANES, LANES, heads=2)}, "the additive score does not"),
        "normalizer": ({**valid, "normalize": "sparsemax"}, "normalizes by softmax, not by sparsemax"),
        "extent": ({**valid, "extent": Window(2)}, "short knows no window extent"),
        "a function": ({**valid, "score": lambda q, k: q @ k.transpose(-2, -1)}, "the .* score does not"),
        "position": ({**valid, "position": "alibi"}, "does not support the bias of alibi positions"),
        "dropout": ({**valid, "dropout": 0.1}, "short has no dropout"),
        "number type": ({name: tensor.double() for name, tensor in valid.items()}, "takes float32"),
        "float mask": ({**valid, "mask": torch.zeros(2, 1, 1, 5)}, "a mask of true and false over keys only"),
        "mask of pairs": ({**valid, "mask": torch.ones(5, 5, dtype=torch.bool)}, "true and false over keys only"),
        "many keys": ({"query": x, "key": long_, "value": long_}, f"takes 1 to {MAX_SIZE} keys"),
        "no keys": ({"query": x, "key": empty, "value": empty}, f"takes 1 to {MAX_SIZE} keys"),
        "odd width": ({"query": odd, "key": odd, "value": odd}, f"widths up to {MAX_SIZE} in steps of {LANES}"),
        "odd value width": ({"query": x, "key": x, "value": odd}, f"widths up to {MAX_SIZE} in steps of {LANES}"),
        "wide": ({"query": wide, "key": wide, "value": wide}, f"widths up to {MAX_SIZE} in steps of {LANES}"),
    }


@pytest.mark.parametrize("kind", unsupported_calls())
def test_unsupported_calls_raise_with_the_reason(kind: str) -> None:
    options, reason = unsupported_calls()[kind]
    tensors = [options.pop(name) for name in ("query", "key", "value")]
    with pytest.raises(ValueError, match=f"backend: 'short' cannot serve this call: .*{reason}"):
        attend(*tensors, **options, backend="short")
    assert attend(*tensors, **options).shape == (*tensors[0].shape[:3], tensors[2].shape[-1]), "others serve it"


def test_disabled_native_library_raises_with_the_reason() -> None:
    x = torch.randn(2, 2, 5, LANES)
    with native.disabled(), pytest.raises(ValueError, match="the C kernels are switched off"):
        attend(x, x, x, backend="short")


def test_second_derivatives_raise_with_the_alternative() -> None:
    q = torch.randn(1, 1, 5, LANES, requires_grad=True)
    (score_gradient,) = torch.autograd.grad(attend(q, q, q, backend="short").sum(), q)
    assert score_gradient.isfinite().all()
    with pytest.raises(RuntimeError, match="no second derivative; use backend='dense'"):
        torch.autograd.grad(attend(q, q, q, backend="short").sum(), q, create_graph=True)


def test_forward_mode_raises() -> None:
    x = torch.randn(1, 1, 5, LANES)
    with pytest.raises(ValueError, match="forward-mode"):
        torch.func.jvp(lambda q: attend(q, x, x, backend="short"), (x,), (x,))
