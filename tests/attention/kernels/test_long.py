"""Long sequences: windows and tiles at sizes where chunks, segments and tiles matter; memory that grows with T."""

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention import (
    T5,
    Additive,
    Attention,
    Hard,
    LocalMonotonic,
    LocalPredictive,
    Shaw,
    Window,
    attend,
    plan,
)
from regard.attention.kernels import tiled, window


def random_tensors(
    queries: int, keys: int, *, heads: int = 2, key_heads: int = 2, seed: int = 0, width: int = 8
) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    shapes = ((2, heads, queries, width), (2, key_heads, keys, width), (2, key_heads, keys, 6))
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def assert_equals_reference(tensors: list[torch.Tensor], backend: str, **options: Any) -> None:
    expected = attend(*tensors, backend="reference", **options)
    output = attend(*tensors, backend=backend, **options)
    torch.testing.assert_close(output, expected, rtol=1e-8, atol=1e-9)
    direction = torch.randn_like(output)
    for actual, reference in zip(
        *(torch.autograd.grad(x, tensors, direction) for x in (output, expected)), strict=True
    ):
        torch.testing.assert_close(actual, reference, rtol=1e-7, atol=1e-8)


@settings(max_examples=60)
@given(
    queries=st.integers(1, 150),
    keys=st.integers(1, 150),
    radius=st.integers(0, 50),
    causal=st.booleans(),
    global_tokens=st.sampled_from([0, 0, 1, 5]),
    offset=st.sampled_from([0, 0, 3, 60, 200]),
    key_heads=st.sampled_from([1, 2]),
    mask=st.sampled_from(["no", "bool", "float"]),
    small_segments=st.booleans(),
    backend=st.sampled_from(["window", "tiled"]),
)
def test_windows_of_any_size_and_offset(
    queries: int,
    keys: int,
    radius: int,
    causal: bool,
    global_tokens: int,
    offset: int,
    key_heads: int,
    mask: str,
    small_segments: bool,
    backend: str,
) -> None:
    tensors = random_tensors(queries, keys, key_heads=key_heads)
    options: dict[str, Any] = {"extent": Window(radius, causal=causal, global_tokens=global_tokens), "offset": offset}
    if mask != "no":
        kept = torch.rand(2, 1, 1, keys) > 0.3
        options["mask"] = kept if mask == "bool" else torch.randn(2, 2, 1, keys).double().masked_fill(~kept, -torch.inf)
    with pytest.MonkeyPatch.context() as patch:
        if small_segments:  # several segments, several tiles
            patch.setattr(window, "SEGMENT_BYTES", 1)
            patch.setattr(window, "MIN_CHUNK", 8)
            patch.setattr(tiled, "MIN_TILE_ROWS", 8)
        assert_equals_reference(tensors, backend, **options)


@pytest.mark.parametrize("normalize", ["softmax", "sparsemax", "entmax", "sigmoid", "none"])
@pytest.mark.parametrize(
    "extent", ["global", "causal", Window(9), Window(9, causal=True, global_tokens=3), "local-p"], ids=str
)
def test_tiles_equal_the_reference(extent: Any, normalize: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled, "TILE_BYTES", 4096)
    monkeypatch.setattr(tiled, "MIN_TILE_ROWS", 8)
    extent = LocalPredictive(8, radius=6.0, heads=2).double() if extent == "local-p" else extent
    for score in ("scaled-dot", Additive(8, 8, 5, heads=2).double()):
        assert_equals_reference(random_tensors(70, 90), "tiled", extent=extent, normalize=normalize, score=score)
        assert_equals_reference(
            random_tensors(70, 90),
            "tiled",
            extent=extent,
            normalize=normalize,
            score=score,
            mask=torch.rand(2, 2, 70, 90) > 0.5,
        )


def test_dropout_in_tiles_is_the_same_in_the_backward_pass() -> None:
    """With one-hot values the output shows which weights were kept; gradients must be those of the same draw."""
    torch.manual_seed(0)
    q, k = torch.randn(1, 1, 200, 4, dtype=torch.float64), torch.randn(1, 1, 64, 4, dtype=torch.float64)
    v = torch.eye(64, dtype=torch.float64)[None, None].requires_grad_()
    output = attend(q, k, v, dropout=0.5, backend="tiled")
    soft = attend(q, k, v)
    kept_weights = output.detach() != 0
    assert 0.4 < kept_weights.double().mean() < 0.6
    torch.testing.assert_close(output, soft * 2 * kept_weights)
    (gradient,) = torch.autograd.grad(output, v, torch.ones_like(output))
    torch.testing.assert_close(gradient[0, 0, :, 0], output.detach().sum(2)[0, 0])


def peak_memory(run: Any) -> int:
    """The most that was allocated at once, by the allocator's own count."""
    with torch.profiler.profile(profile_memory=True) as profile:
        run()
    current = peak = 0
    for event in profile.profiler.kineto_results.events():  # in the order of time
        if event.name() == "[memory]":
            current += event.nbytes()
            peak = max(peak, current)
    return peak


LONG: dict[str, dict[str, Any]] = {
    "softmax": {},
    "masked": {"mask": True},
    "causal": {"extent": "causal"},
    "causal and masked": {"extent": "causal", "mask": True},
    "alibi": {"position": "alibi"},
    "dropout": {"dropout": 0.1},
    "window": {"extent": Window(16)},
    "window, sparsemax": {"extent": Window(16), "normalize": "sparsemax"},
    "local-m": {"extent": LocalMonotonic(16)},
    "sparsemax": {"normalize": "sparsemax"},
    "entmax 1.3": {"normalize": "entmax"},
    "sigmoid": {"normalize": "sigmoid"},
    "none": {"normalize": "none"},
    "additive": {"score": "additive"},
    "additive window": {"score": "additive", "extent": Window(16)},
    "local-p": {"extent": "local-p"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_memory_is_linear_in_the_length(name: str) -> None:
    """Twice the length takes at most 2.5 times the memory, forward and backward; the square would take four."""
    options = dict(LONG[name])
    masked = options.pop("mask", False)
    if options.get("score") == "additive":
        options["score"] = Additive(8, 8, heads=1)
    if options.get("extent") == "local-p":
        options["extent"] = LocalPredictive(8, radius=8)

    def memory_at(T: int) -> int:
        q, k, v = (torch.randn(1, 1, T, 8, requires_grad=True) for _ in range(3))
        if masked:
            options["mask"] = torch.rand(1, 1, 1, T) > 0.1
        return peak_memory(lambda: attend(q, k, v, **options).sum().backward())

    memory_at(1024)
    short_peak, long_peak = memory_at(4096), memory_at(8192)
    assert long_peak <= 2.5 * short_peak + (1 << 20), (short_peak, long_peak)
    assert long_peak < 8192 * 8192 * 4 / 2, "less than half of one matrix of scores"


def test_planner_chooses_tiles_for_large_matrices() -> None:
    def kernel(T: int, **options: Any) -> str:
        x = torch.empty(1, 8, T, 64, device="meta")
        return plan(x, x, x, **options).kernel

    assert kernel(512, normalize="sparsemax") == "dense"
    assert kernel(8192, normalize="sparsemax") == "tiled"
    assert kernel(8192) == "sdpa"
    assert kernel(8192, extent="causal") == "sdpa"
    mask = torch.empty(1, 1, 1, 8192, dtype=torch.bool, device="meta")
    assert kernel(8192, mask=mask) == "sdpa"
    assert kernel(8192, mask=mask, extent="causal") == "tiled"
    assert kernel(8192, extent=Window(64)) == "window"
    assert kernel(100, extent=Window(64)) == "sdpa"
    assert kernel(8192, extent=Window(64), normalize="sigmoid") == "tiled"


@pytest.mark.parametrize("T", [1, 7, 64, 129])
def test_window_weights_are_a_band(T: int) -> None:
    value = torch.eye(T)[None, None]
    query = torch.zeros(1, 1, T, 4)
    for radius, causal in itertools.product([0, 1, 40], [False, True]):
        output = attend(query, query, value, extent=Window(radius, causal=causal), backend="window")[0, 0]
        positions = torch.arange(T)
        band = (positions[:, None] - positions).abs() <= radius
        band = band & (positions <= positions[:, None]) if causal else band
        torch.testing.assert_close(output, band / band.sum(-1, keepdim=True))


@pytest.mark.parametrize("backend", ["window", "tiled"])
@pytest.mark.parametrize("extent", [Window(3), Window(3, causal=True), Window(2, global_tokens=2)], ids=str)
def test_gradcheck(backend: str, extent: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "SEGMENT_BYTES", 1)
    monkeypatch.setattr(window, "MIN_CHUNK", 4)
    monkeypatch.setattr(tiled, "MIN_TILE_ROWS", 2)
    torch.manual_seed(0)
    tensors = [torch.randn(1, 1, 11, 2, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    assert torch.autograd.gradcheck(lambda q, k, v: attend(q, k, v, extent=extent, backend=backend), tensors)


@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 90), (2, 1, 70, 90), (1, 2, 1, 90), (70, 90), (70, 1), (1, 1), (2, 2, 70, 1)], ids=str
)
@pytest.mark.parametrize("extent", ["global", Window(9, global_tokens=2)], ids=str)
def test_masks_of_any_shape_have_gradients_in_tiles(
    shape: tuple[int, ...], extent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiled, "TILE_BYTES", 4096)
    monkeypatch.setattr(tiled, "MIN_TILE_ROWS", 8)
    q, k, v = random_tensors(70, 90)
    mask = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    outputs = [
        attend(q, k, v, mask=mask, extent=extent, normalize="sigmoid", backend=b) for b in ("tiled", "reference")
    ]
    torch.testing.assert_close(*outputs)
    direction = torch.randn_like(outputs[0])
    torch.testing.assert_close(*(torch.autograd.grad(x, mask, direction)[0] for x in outputs))


@pytest.mark.parametrize("estimator", ["gumbel", "reinforce"])
def test_backward_uses_the_mode_of_the_forward_pass(estimator: Any) -> None:
    q, k, v = random_tensors(70, 90)
    gradients = []
    for mode_changed in (False, True):
        hard = Hard(estimator)
        torch.manual_seed(0)
        hard_attended = attend(q, k, v, normalize=hard, backend="tiled", need_weights=True)
        hard.train(not mode_changed)
        loss = hard_attended.output.sum() + (hard_attended.draw.log_prob.sum() if hard_attended.draw else 0)
        gradients.append(torch.autograd.grad(loss, [q, k, v], allow_unused=True))
    assert all((x is None and y is None) or torch.equal(x, y) for x, y in zip(*gradients, strict=True))
    assert gradients[0][0] is not None and gradients[0][0].abs().sum() > 0  # noqa: PT018


def test_backward_recomputes_tiles_under_autocast() -> None:
    torch.manual_seed(0)
    attention = Attention(16, heads=2, position="shaw", backend="tiled")
    x = torch.randn(2, 50, 16)
    with torch.autocast("cpu", torch.bfloat16):
        output = attention(x).output
    output.float().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in attention.parameters())


@pytest.mark.parametrize("captures_parameter", [False, True])
def test_random_function_is_reproduced_in_the_backward_pass(captures_parameter: bool) -> None:
    """With raw scores the output is linear in the values, so sum(output) must be sum(values * their gradient)."""
    q, k, v = random_tensors(70, 90)
    scale = torch.ones((), dtype=torch.float64, requires_grad=captures_parameter)

    def noisy(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(q @ k.mT * scale, 0.5)

    output = attend(q, k, v, score=noisy, normalize="none", backend="tiled")
    torch.rand(7)  # the world goes on between forward and backward
    (gradient,) = torch.autograd.grad(output.sum(), v)
    torch.testing.assert_close((v * gradient).sum(), output.sum())


@pytest.mark.parametrize("options", [{"dropout": 0.5}, {"normalize": Hard("gumbel")}], ids=str)
def test_random_tiles_are_reproduced_in_the_backward_pass(options: Any) -> None:
    q, k, v = random_tensors(70, 90)
    output = attend(q, k, v, backend="tiled", **options)
    torch.rand(7)
    random_state = torch.get_rng_state()
    (gradient,) = torch.autograd.grad(output.sum(), v, retain_graph=True)
    torch.testing.assert_close((v * gradient).sum(), output.sum())
    assert torch.equal(torch.get_rng_state(), random_state), "backward leaves the random numbers alone"


def test_gumbel_gradients_in_tiles_equal_the_dense_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """One tile holds everything, so the same numbers are drawn as by the dense kernel."""
    q, k, v = random_tensors(20, 30)
    gradients = []
    for backend in ("dense", "tiled"):
        torch.manual_seed(1)
        output = attend(q, k, v, normalize=Hard("gumbel", temperature=0.7), backend=backend)
        gradients.append(torch.autograd.grad(output, [q, k, v], torch.ones_like(output)))
    for actual_gradient, expected_gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(actual_gradient, expected_gradient)


def test_functional_call_parameters_get_gradients() -> None:
    """torch.func.functional_call puts other weights in, and takes them out before backward."""
    q, k, v = (x.detach() for x in random_tensors(70, 90))
    score = Additive(8, 8, 5, heads=2).double()
    gradients = []
    for backend in ("dense", "tiled"):

        class Model(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.score = score

            def forward(self, backend: str = backend) -> torch.Tensor:
                return attend(q, k, v, score=self.score, backend=backend)

        replaced = {f"score.{name}": (2 * p.detach()).requires_grad_() for name, p in score.named_parameters()}
        output = torch.func.functional_call(Model(), replaced)
        gradients.append(torch.autograd.grad(output.square().sum(), list(replaced.values())))
    for actual_gradient, expected_gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(actual_gradient, expected_gradient)


@pytest.mark.parametrize("position", [T5(2), Shaw(8)], ids=["t5", "shaw"])
def test_position_parameters_alone_get_gradients_in_tiles(position: Any) -> None:
    position = position.double()
    q, k, v = (x.detach() for x in random_tensors(70, 90))
    gradients = []
    for backend in ("dense", "tiled"):
        output = attend(q, k, v, position=position, backend=backend)
        gradients.append(torch.autograd.grad(output.square().sum(), list(position.parameters())))
    for actual_gradient, expected_gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(actual_gradient, expected_gradient)


def test_single_query_of_a_window_runs_in_tiles() -> None:
    q, k = torch.randn(1, 2, 1, 8), torch.randn(1, 2, 5000, 8)
    chosen_plan = plan(q, k, k, extent=Window(64, causal=True), offset=4999)
    assert chosen_plan.kernel == "tiled"
    expected = attend(q, k, k, extent=Window(64, causal=True), offset=4999, backend="reference")
    torch.testing.assert_close(attend(q, k, k, extent=Window(64, causal=True), offset=4999), expected)


@pytest.mark.slow
def test_wide_windows_use_little_memory() -> None:
    q = torch.randn(1, 1, 8192, 8, requires_grad=True)
    peak_bytes = peak_memory(lambda: attend(q, q, q, extent=Window(1024), backend="window").sum().backward())
    assert peak_bytes < 64 << 20
    mask = torch.ones(2, 1, 1, 8192, dtype=torch.bool)
    batched = torch.randn(2, 4, 8192, 8, requires_grad=True)
    assert plan(batched, batched, batched, extent=Window(1024), mask=mask).kernel == "tiled"
    peak_bytes = peak_memory(lambda: attend(batched, batched, batched, extent=Window(1024), mask=mask).sum().backward())
    assert peak_bytes < 200 << 20
