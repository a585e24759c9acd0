"""Matrix products in bfloat16, everything else in float32."""

import pytest
import torch
from torch import nn

from regard.training.precision import matmul_precision, resolve_precision


def test_products_are_bfloat16_only_inside_the_context() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(256, 256)
    x = torch.randn(64, 256, requires_grad=True)
    exact = layer(x)
    with matmul_precision("float32"):
        assert torch.equal(layer(x), exact)
    with matmul_precision("bfloat16"):
        bfloat16 = layer(x)
    assert bfloat16.dtype == torch.float32
    assert not torch.equal(bfloat16, exact)
    operands = (x.bfloat16().double() @ layer.weight.bfloat16().double().t()).bfloat16().float() + layer.bias
    torch.testing.assert_close(bfloat16, operands, rtol=2**-7, atol=1e-3)
    assert torch.equal(layer(x), exact)


def test_gradients_match_float32_within_bfloat16_precision() -> None:
    torch.manual_seed(1)
    layer = nn.Linear(128, 256)
    x = torch.randn(4, 32, 128, requires_grad=True)
    g = torch.randn(4, 32, 256)
    found = []
    for precision in ("float32", "bfloat16"):
        with matmul_precision(precision):
            y = layer(x)
        found.append(torch.autograd.grad(y, (x, layer.weight, layer.bias), g))
    for exact, bfloat16 in zip(*found, strict=True):
        assert bfloat16.dtype == torch.float32
        assert (exact - bfloat16).norm() / exact.norm() < 0.01
    assert torch.equal(found[0][2], found[1][2]), "the gradient of a bias is not bfloat16"


def test_small_products_and_other_dtypes_are_unchanged() -> None:
    layer, x = nn.Linear(8, 8), torch.randn(2, 8)
    double = nn.Linear(256, 256).double()
    y = torch.randn(64, 256, dtype=torch.float64)
    expected = layer(x), double(y)
    with matmul_precision("bfloat16"):
        assert torch.equal(layer(x), expected[0])
        assert torch.equal(double(y), expected[1])


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_auto_resolves_to_one_of_the_explicit_precisions(precision: str) -> None:
    device = torch.device("cpu")
    assert resolve_precision(precision, device) == precision
    assert resolve_precision("auto", device) in ("float32", "bfloat16")
