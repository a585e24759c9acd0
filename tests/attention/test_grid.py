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
SERVED_BY_ALL = {"dense", "tiled", "auto"}


def run(one: Cell, backend: str) -> Tensor | None:
    """The output, or None where the kernel refuses by name; auto, dense and tiled may not."""
    try:
        return attend(one.query, one.key, one.value, backend=backend, **one.options)
    except ValueError as refusal:
        assert backend not in SERVED_BY_ALL, refusal
        assert f"backend: '{backend}' cannot serve this call: " in str(refusal)
        return None


@pytest.mark.parametrize("source", ["cross", "self"])
@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("score", SCORES)
def test_every_kernel_agrees_with_the_reference_in_float64(score: str, extent: str, source: str) -> None:
    served = set()
    for normalize, masked in itertools.product(NORMALIZERS, ["no", "padding", "rows", "added"]):
        one = cell(score, extent, normalize, source=source, masked=masked)
        expected = attend(one.query, one.key, one.value, backend="reference", **one.options)
        direction = torch.randn_like(expected)
        slopes = torch.autograd.grad(expected, one.tensors, direction, allow_unused=True)
        for backend in KERNELS:
            output = run(one, backend)
            if output is None:
                continue
            served.add(backend)
            torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-9)
            got = torch.autograd.grad(output, one.tensors, direction, allow_unused=True)
            for one_of, mine, theirs in zip(one.tensors, got, slopes, strict=True):
                ours, expected_slope = (torch.zeros_like(one_of) if x is None else x for x in (mine, theirs))
                torch.testing.assert_close(ours, expected_slope, rtol=1e-6, atol=1e-8)
    fused = score not in ("additive", "function") and extent != "local-p"
    assert served == {"auto", "dense", "tiled"} | ({"sdpa"} if fused else set()) | (
        {"window"} if fused and ("window" in extent or extent == "local-m") else set()
    )


@pytest.mark.parametrize("compiled", [True, False], ids=["C", "PyTorch"])
@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("score", SCORES)
def test_float32_error_is_at_most_twice_that_of_plain_code(score: str, extent: str, compiled: bool) -> None:
    if compiled and native.library() is None:
        pytest.skip(native.unavailable_reason())
    for normalize, source in itertools.product(NORMALIZERS, ["cross", "self"]):
        if normalize == "hard":
            continue  # a position is chosen or it is not; agreement is tested above
        exact = cell(score, extent, normalize, source=source, queries=40, keys=51, batch=4)
        plain = exact.to(torch.float32)
        truth = attend(exact.query, exact.key, exact.value, backend="reference", **exact.options)
        naive = attend(plain.query, plain.key, plain.value, backend="reference", **plain.options)
        naive_error = (naive - truth).square().mean().sqrt().item()
        for backend in KERNELS:
            with nullcontext() if compiled else native.disabled():
                output = run(plain, backend)
            if output is not None:
                error = (output - truth).square().mean().sqrt().item()
                assert error <= 2 * naive_error, (normalize, source, backend, error / naive_error)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("key_heads", [1, 2])
def test_shared_key_heads_agree_with_the_reference(score: str, key_heads: int) -> None:
    for extent, normalize, masked in itertools.product(EXTENTS, NORMALIZERS, ["no", "padding", "rows"]):
        one = cell(score, extent, normalize, key_heads=key_heads, masked=masked)
        expected = attend(one.query, one.key, one.value, backend="reference", **one.options)
        for backend in KERNELS:
            output = run(one, backend)
            if output is not None:
                torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("score", SCORES)
def test_asking_for_weights_changes_no_bit_of_the_output(score: str, backend: str) -> None:
    for extent, normalize, masked in itertools.product(EXTENTS, NORMALIZERS, ["no", "padding"]):
        one = cell(score, extent, normalize, masked=masked, dtype=torch.float32)
        output = run(one, backend)
        if output is None:
            continue
        attended = attend(one.query, one.key, one.value, need_weights=True, backend=backend, **one.options)
        assert torch.equal(attended.output, output)
        assert attended.weights is not None
        torch.testing.assert_close(attended.weights @ one.value, output, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("score", SCORES)
def test_half_precision_stays_near(score: str, dtype: torch.dtype) -> None:
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
def test_nothing_to_ask_and_nothing_to_see_are_served(queries: int, keys: int) -> None:
    for score, extent, normalize in itertools.product(SCORES, EXTENTS, NORMALIZERS):
        one = cell(score, extent, normalize, queries=queries, keys=keys)
        if keys == 0 and normalize == "hard":
            continue
        for backend in ("auto", "dense", "tiled"):
            output = run(one, backend)
            assert output is not None
            assert output.shape == (2, HEADS, queries, 5)
            assert output.isfinite().all()
