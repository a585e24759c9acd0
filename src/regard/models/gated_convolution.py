"""Gated convolutions over time.

Gehring et al. 2017 (arXiv:1705.03122): convolution to twice the width, a gated linear unit, a residual connection, and
sqrt(1/2) to keep the variance. Initialized as in the paper, sqrt(4 p / n) before a gate and sqrt(p / n) elsewhere, p
the probability of dropout to keep an element and n the number of inputs. Deviation: no weight normalization (Adam takes
its place).
"""

import math

import torch
from torch import Tensor, nn

from regard.errors import RegardError

SQRT_HALF = math.sqrt(0.5)


class GatedConvolution(nn.Module):
    """x [B, T, D] -> GLU of a convolution, [B, T, D]; padded on both sides, or on the left only if `causal`.

    Computed as one matrix product over windows of `kernel` vectors, the fastest form on a CPU for short sequences.
    """

    def __init__(self, width: int, kernel: int, *, causal: bool, keep_probability: float) -> None:
        super().__init__()
        if kernel % 2 == 0 and not causal:
            raise RegardError(f"kernel: {kernel} is even, so it has no middle; use {kernel + 1}.")
        self.kernel, self.causal = kernel, causal
        self.linear = nn.Linear(kernel * width, 2 * width)
        init_linear(self.linear, 4 * keep_probability)

    def forward(self, x: Tensor, past: Tensor | None = None) -> Tensor:
        """`past` [B, kernel - 1, D]: the inputs before x; zeros if not given. Causal only."""
        padding = self.kernel - 1
        if past is not None:
            x = torch.cat([past, x], 1)
        elif self.causal:
            x = nn.functional.pad(x, (0, 0, padding, 0))
        else:
            x = nn.functional.pad(x, (0, 0, padding // 2, padding // 2))
        T = x.shape[1] - padding
        windows = torch.cat([x[:, shift : shift + T] for shift in range(self.kernel)], -1)
        return nn.functional.glu(self.linear(windows), -1)


def init_linear(linear: nn.Linear, gain: float) -> None:
    """Weights from N(0, gain / inputs), biases zero."""
    nn.init.normal_(linear.weight, std=math.sqrt(gain / linear.in_features))
    nn.init.zeros_(linear.bias)
