"""Every cell of score x extent x normalizer x source, every kernel that serves it, held to the reference."""

import itertools
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from regard import native
from regard.attention import attend
from tests.attention.cells import EXTENTS, HEADS, NORMALIZERS, SCORES, Cell, cell

KERNELS = ["auto", "sdpa", "window", "dense", "tiled"]
ALWAYS_SUPPORTED = {"dense", "tiled", "auto"}


def run(inputs: Cell, backend: str) -> Tensor | None:
    """The output, or None where the kernel refuses by name; auto, dense and tiled may not."""
    try:
        return attend(inputs.query, inputs.key, inputs.value, backend=backend, **inputs.options)
    except ValueError as error:
        assert backend not in ALWAYS_SUPPORTED, error
        assert f"backend: '{backend}' cannot serve this call: " in str(error)
        return None


@pytest.mark.parametrize("source", ["cross", "self"])
@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("score", SCORES)
def test_every_kernel_agrees_with_the_reference_in_float64(score: str, extent: str, source: str) -> None:
    supported = set()
    for normalize, masked in itertools.product(NORMALIZERS, ["no", "padding", "rows", "added"]):
        inputs = cell(score, extent, normalize, source=source, masked=masked)
        expected = attend(inputs.query, inputs.key, inputs.value, backend="reference", **inputs.options)
        direction = torch.randn_like(expected)
        gradients = torch.autograd.grad(expected, inputs.tensors, direction, allow_unused=True)
        for backend in KERNELS:
            output = run(inputs, backend)
            if output is None:
                continue
            supported.add(backend)
            torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-9)
            actual_gradients = torch.autograd.grad(output, inputs.tensors, direction, allow_unused=True)
            for tensor, a, b in zip(inputs.tensors, actual_gradients, gradients, strict=True):
                actual_gradient, expected_gradient = (torch.zeros_like(tensor) if x is None else x for x in (a, b))
                torch.testing.assert_close(actual_gradient, expected_gradient, rtol=1e-6, atol=1e-8)
    fused = score not in ("additive", "function") and extent != "local-p"
    assert supported == {"auto", "dense", "tiled"} | ({"sdpa"} if fused else set()) | (
        {"window"} if fused and ("window" in extent or extent == "local-m") else set()
    )


@pytest.mark.parametrize("use_native", [True, False], ids=["C", "PyTorch"])
@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("score", SCORES)
def test_float32_error_is_at_most_twice_that_of_the_reference(score: str, extent: str, use_native: bool) -> None:
    if use_native and native.library() is None:
        pytest.skip(native.unavailable_reason())
    for normalize, source in itertools.product(NORMALIZERS, ["cross", "self"]):
        if normalize == "hard":
            continue  # a position is chosen or it is not; agreement is tested above
        exact = cell(score, extent, normalize, source=source, queries=40, keys=51, batch=4)
        single = exact.to(torch.float32)
        exact_output = attend(exact.query, exact.key, exact.value, backend="reference", **exact.options)
        reference_output = attend(single.query, single.key, single.value, backend="reference", **single.options)
        reference_error = (reference_output - exact_output).square().mean().sqrt().item()
        for backend in KERNELS:
            with nullcontext() if use_native else native.disabled():
                output = run(single, backend)
            if output is not None:
                error = (output - exact_output).square().mean().sqrt().item()
                assert error <= 2 * reference_error, (normalize, source, backend, error / reference_error)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("key_heads", [1, 2])
def test_shared_key_heads_agree_with_the_reference(score: str, key_heads: int) -> None:
    for extent, normalize, masked in itertools.product(EXTENTS, NORMALIZERS, ["no", "padding", "rows"]):
        inputs = cell(score, extent, normalize, key_heads=key_heads, masked=masked)
        expected = attend(inputs.query, inputs.key, inputs.value, backend="reference", **inputs.options)
        for backend in KERNELS:
            output = run(inputs, backend)
            if output is not None:
                torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("score", SCORES)
def test_need_weights_does_not_change_the_output(score: str, backend: str) -> None:
    for extent, normalize, masked in itertools.product(EXTENTS, NORMALIZERS, ["no", "padding"]):
        inputs = cell(score, extent, normalize, masked=masked, dtype=torch.float32)
        output = run(inputs, backend)
        if output is None:
            continue
        attended = attend(inputs.query, inputs.key, inputs.value, need_weights=True, backend=backend, **inputs.options)
        assert torch.equal(attended.output, output)
        assert attended.weights is not None
        torch.testing.assert_close(attended.weights @ inputs.value, output, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("score", SCORES)
def test_half_precision_is_close_to_the_reference(score: str, dtype: torch.dtype) -> None:
    for extent, normalize in itertools.product(EXTENTS, NORMALIZERS):
        if normalize == "hard":
            continue
        exact = cell(score, extent, normalize)
        half = exact.to(dtype)
        expected = attend(exact.query, exact.key, exact.value, backend="reference", **exact.options)
        output = attend(half.query, half.key, half.value, **half.options)
        assert output.dtype == dtype
        if extent != "local-p":  # half precision may move a predicted window by a position
            torch.testing.assert_close(output.double(), expected, rtol=0.15, atol=0.15)


@pytest.mark.parametrize("queries", [0, 1, 3])
@pytest.mark.parametrize("keys", [0, 1, 3])
def test_empty_queries_and_keys_are_supported(queries: int, keys: int) -> None:
    for score, extent, normalize in itertools.product(SCORES, EXTENTS, NORMALIZERS):
        inputs = cell(score, extent, normalize, queries=queries, keys=keys)
        if keys == 0 and normalize == "hard":
            continue
        for backend in ("auto", "dense", "tiled"):
            output = run(inputs, backend)
            assert output is not None
            assert output.shape == (2, HEADS, queries, 5)
            assert output.isfinite().all()
