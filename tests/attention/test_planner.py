"""The planner: what it says is what runs, and it says why."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from regard import native
from regard.attention import (
    T5,
    Additive,
    ALiBi,
    Attention,
    Bilinear,
    LocalMonotonic,
    LocalPredictive,
    Rotary,
    Shaw,
    Window,
    attend,
    catalog,
    plan,
)
from regard.attention.call import Call, KernelOutput
from regard.attention.kernels import additive, dense, sdpa, tiled, window
from regard.attention.planner import KERNELS
from tests.attention.cells import EXTENTS, HEADS, NORMALIZERS, SCORES, WIDTH, cell


@pytest.mark.parametrize("score", SCORES)
def test_plan_names_the_kernel_that_runs(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels_run: list[str] = []
    for name, kernel in KERNELS.items():

        def recording(
            call: Call, name: str = name, original: Callable[[Call], KernelOutput] = kernel.run
        ) -> KernelOutput:
            kernels_run.append(name)
            return original(call)

        monkeypatch.setattr(kernel, "run", recording)
    for extent, normalize, masked in itertools.product(EXTENTS, NORMALIZERS, ["no", "rows"]):
        inputs = cell(score, extent, normalize, masked=masked, queries=100, keys=120, batch=1)
        kernels_run.clear()
        expected = plan(inputs.query, inputs.key, inputs.value, **inputs.options)
        attend(inputs.query, inputs.key, inputs.value, **inputs.options)
        assert kernels_run[0] == expected.kernel
        assert expected.why
        assert expected.kernel not in expected.declined


def test_plan_as_text() -> None:
    q = torch.empty(2, 4, 3000, 32, device="meta")
    text = str(plan(q, q, q, extent=Window(8), normalize="sparsemax"))
    lines = text.splitlines()
    assert lines[0].startswith("kernel   tiled: ")
    assert lines[1].startswith("why      ")
    assert any(line.startswith("not      sdpa: sdpa normalizes by softmax, not by sparsemax") for line in lines)
    assert max(len(line) for line in lines) <= 130


def test_plan_works_on_the_meta_device() -> None:
    """Shapes are enough, with learned parts too."""
    inputs = cell("additive", "local-p", "entmax learned", dtype=torch.float32)
    q, k, v = (x.detach().to("meta") for x in (inputs.query, inputs.key, inputs.value))
    expected = plan(inputs.query, inputs.key, inputs.value, **inputs.options)
    assert plan(q, k, v, **inputs.options) == expected
    assert inputs.options["score"].v.device.type == "cpu"


def test_plan_describes_missing_native_kernels() -> None:
    inputs = cell("additive", "global", "sparsemax", dtype=torch.float32)
    with native.disabled():
        described = plan(inputs.query, inputs.key, inputs.value, **inputs.options)
    assert "PyTorch tile by tile (the C kernels are switched off)" in described.scores
    assert described.weights == "sparsemax, Newton steps in PyTorch"
    if native.library() is not None:
        described = plan(inputs.query, inputs.key, inputs.value, **inputs.options)
        assert described.scores == "additive, C kernel compiled for this processor"
        assert described.weights == "sparsemax, C kernel compiled for this processor"
        assert additive.uses_native_kernel(inputs.query)


def test_catalog_lists_the_supporting_kernels() -> None:
    """For every choice: the kernels it lists serve it with everything else plain, and no others do."""
    names = {"entmax": "entmax-1.5"}
    for entry in catalog.entries():
        if entry.name == "location":
            continue  # a module's, not a call's: below
        if entry.axis in ("score", "extent", "normalizer"):
            names_by_axis = {
                "score": "scaled-dot",
                "extent": "global",
                "normalizer": "softmax",
                entry.axis: names.get(entry.name, entry.name),
            }
            if "window" in entry.kernels and entry.axis != "extent":
                names_by_axis["extent"] = "window"
            inputs = cell(names_by_axis["score"], names_by_axis["extent"], names_by_axis["normalizer"])
            options = dict(inputs.options)
        elif entry.kernels:
            inputs = cell("scaled-dot", "window" if "window" in entry.kernels else "global", "softmax")
            choices = {"shaw": Shaw(WIDTH, value_width=5).double(), "t5": T5(HEADS).double()}
            options = {**inputs.options, "position": choices.get(entry.name, entry.name)}
        else:
            continue
        supporting = set()
        for kernel in set(KERNELS) - {"short"}:  # which is picky about types and widths: below
            with torch.no_grad():
                try:
                    attend(inputs.query, inputs.key, inputs.value, backend=kernel, **options)
                    supporting.add(kernel)
                except ValueError as error:
                    assert "cannot serve" in str(error)
        expected = set(entry.kernels) - {"short"}
        assert supporting == expected, entry.name


def test_catalog_lists_the_kernels_of_the_location_score() -> None:
    (entry,) = [entry for entry in catalog.entries() if entry.name == "location"]
    supporting = set()
    for kernel in KERNELS:
        attention = Attention(16, key_width=16, score="location", backend=kernel)
        try:
            with torch.no_grad():
                attention(torch.randn(2, 3, 16), torch.randn(2, 5, 16))
            supporting.add(kernel)
        except ValueError as error:
            assert "cannot serve" in str(error)
    assert supporting == set(entry.kernels)


@pytest.mark.skipif(native.library() is None, reason="no compiler here")
def test_catalog_lists_what_the_short_kernel_supports() -> None:
    choices: dict[str, Any] = {
        "additive": Additive(16, 16, heads=2),
        "bilinear": Bilinear(16, 16, heads=2),
        "window": Window(2),
        "local-m": LocalMonotonic(2),
        "local-p": LocalPredictive(16, radius=2, heads=2),
        "rotary": Rotary(16),
        "alibi": ALiBi(2),
        "shaw": Shaw(16),
        "t5": T5(2),
    }
    x = torch.randn(2, 2, 6, 16)
    for entry in catalog.entries():
        if entry.name == "location":
            continue
        if entry.axis in ("score", "extent", "normalizer", "position") and entry.kernels:
            options = {catalog.AXES[entry.axis].keyword: choices.get(entry.name, entry.name)}
            try:
                with torch.no_grad():
                    attend(x, x, x, backend="short", **options)
                supported = True
            except ValueError as error:
                assert "cannot serve" in str(error)
                supported = False
            assert supported == ("short" in entry.kernels), entry.name


def test_sdpa_is_fused_whenever_it_is_planned() -> None:
    """PyTorch's own profiler: the flash kernel runs, the one that computes everything does not."""
    cases: list[dict[str, Any]] = [
        {},
        {"extent": "causal"},
        {"mask": torch.rand(2, 1, 1, 50) > 0.2},
        {"mask": torch.rand(50, 50) > 0.2},
        {"mask": torch.randn(2, 4, 50, 50)},
        {"extent": "causal", "mask": torch.rand(2, 1, 1, 50) > 0.2},
        {"position": "alibi"},
        {"score": "cosine"},
        {"extent": Window(30)},
    ]
    q, k = torch.randn(2, 4, 50, 16, requires_grad=True), torch.randn(2, 2, 50, 16, requires_grad=True)
    for values in (16, 10, 20):
        v = torch.randn(2, 2, 50, values, requires_grad=True)
        for query in (q, q.transpose(-1, -2).contiguous().transpose(-1, -2)):
            for options in cases:
                assert plan(query, k, v, **options).kernel == "sdpa"
                with torch.profiler.profile() as profile:
                    attend(query, k, v, **options).sum().backward()
                names = {event.name for event in profile.events()}
                assert "aten::_scaled_dot_product_flash_attention_for_cpu" in names, options
                assert "aten::_scaled_dot_product_flash_attention_for_cpu_backward" in names, options
                assert not any("softmax" in name for name in names), options


def test_every_kernel_has_the_same_interface() -> None:
    for kernel in (sdpa, window, dense, tiled):
        assert callable(kernel.unsupported_reason)
        assert callable(kernel.run)
    assert set(KERNELS) == set(catalog.KERNELS)
