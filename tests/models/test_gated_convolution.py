"""Gated convolutions: PyTorch's conv1d with a gated linear unit."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from regard.models.gated_convolution import GatedConvolution, init_linear


def reference_convolution(convolution: GatedConvolution, x: Tensor, width: int) -> Tensor:
    """conv1d over [B, D, T]; its weight [2D, D, kernel] is our [2D, kernel D]."""
    kernel = convolution.kernel
    weight = convolution.linear.weight.view(2 * width, kernel, width).transpose(1, 2)
    padding = (kernel - 1, 0) if convolution.causal else ((kernel - 1) // 2, (kernel - 1) // 2)
    padded = nn.functional.pad(x.transpose(1, 2), padding)
    out = nn.functional.conv1d(padded, weight, convolution.linear.bias)
    a, b = out.transpose(1, 2).chunk(2, -1)
    return a * torch.sigmoid(b)


@given(
    batch=st.integers(1, 3),
    time=st.integers(1, 9),
    width=st.integers(1, 5),
    kernel=st.integers(1, 6),
    causal=st.booleans(),
)
def test_equals_conv1d_and_glu(batch: int, time: int, width: int, kernel: int, causal: bool) -> None:
    kernel = kernel if causal else kernel | 1
    convolution = GatedConvolution(width, kernel, causal=causal, keep_probability=0.9).double()
    nn.init.normal_(convolution.linear.bias)
    x = torch.randn(batch, time, width, dtype=torch.float64)
    torch.testing.assert_close(convolution(x), reference_convolution(convolution, x, width))


@given(time=st.integers(2, 9), kernel=st.integers(1, 5), data=st.data())
def test_pieces_with_past_equal_the_whole(time: int, kernel: int, data: st.DataObject) -> None:
    split = data.draw(st.integers(1, time - 1))
    convolution = GatedConvolution(3, kernel, causal=True, keep_probability=1.0).double()
    x = torch.randn(2, time, 3, dtype=torch.float64)
    past = torch.cat([x.new_zeros(2, kernel - 1, 3), x[:, :split]], 1)[:, split:]
    pieces = [convolution(x[:, :split]), convolution(x[:, split:], past)]
    torch.testing.assert_close(torch.cat(pieces, 1), convolution(x))


@pytest.mark.parametrize("kernel", [2, 4])
def test_even_kernel_raises_unless_causal(kernel: int) -> None:
    with pytest.raises(ValueError, match=f"kernel: {kernel} is even.*use {kernel + 1}"):
        GatedConvolution(3, kernel, causal=False, keep_probability=1.0)
    GatedConvolution(3, kernel, causal=True, keep_probability=1.0)


@pytest.mark.parametrize("gain", [0.5, 4.0])
def test_weights_are_initialized_by_the_number_of_inputs(gain: float) -> None:
    torch.manual_seed(0)
    linear = nn.Linear(100, 200)
    init_linear(linear, gain)
    assert linear.weight.std().item() == pytest.approx((gain / 100) ** 0.5, rel=0.05)
    assert not linear.bias.any()
