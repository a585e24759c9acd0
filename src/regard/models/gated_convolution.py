"""Gated convolutions over time.

Gehring et al. 2017 (arXiv:1705.03122): convolution to twice the width, a gated linear unit, a residual connection, and
sqrt(1/2) to keep the variance. Initialised as they say, sqrt(4 p / n) before a gate and sqrt(p / n) elsewhere, p the
share that dropout keeps and n the number of inputs. Deviation: no weight normalisation (Adam takes its place).
"""

import math

import torch
from torch import Tensor, nn

from regard.errors import RegardError

SQRT_HALF = math.sqrt(0.5)


class GatedConvolution(nn.Module):
    """x [B, T, D] -> GLU of a convolution, [B, T, D]; padded on both sides, or on the left only if `causal`.

    Written as one matrix product over neighbouring vectors side by side, the fastest form on a processor for short
    sequences.
    """

    def __init__(self, width: int, kernel: int, *, causal: bool, keep: float) -> None:
        super().__init__()
        if kernel % 2 == 0 and not causal:
            raise RegardError(f"kernel: {kernel} is even, so it has no middle; use {kernel + 1}.")
        self.kernel, self.causal = kernel, causal
        self.linear = nn.Linear(kernel * width, 2 * width)
        init_linear(self.linear, 4 * keep)

    def forward(self, x: Tensor, past: Tensor | None = None) -> Tensor:
        """`past` [B, kernel - 1, D] is what lies before x; zeros if not given. Causal only."""
        reach = self.kernel - 1
        if past is not None:
            x = torch.cat([past, x], 1)
        elif self.causal:
            x = nn.functional.pad(x, (0, 0, reach, 0))
        else:
            x = nn.functional.pad(x, (0, 0, reach // 2, reach // 2))
        T = x.shape[1] - reach
        neighbours = torch.cat([x[:, shift : shift + T] for shift in range(self.kernel)], -1)
        return nn.functional.glu(self.linear(neighbours), -1)


def init_linear(linear: nn.Linear, gain: float) -> None:
    """Weights from N(0, gain / inputs), biases zero."""
    nn.init.normal_(linear.weight, std=math.sqrt(gain / linear.in_features))
    nn.init.zeros_(linear.bias)
