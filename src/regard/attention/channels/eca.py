"""ECA (Wang et al. 2019, arXiv:1910.03151)."""

import math

import torch
from torch import Tensor, nn

from regard.attention.channels import CHANNELS
from regard.attention.channels.base import ImageAttention, check_image, hidden_width
from regard.errors import RegardError


@CHANNELS.register("eca")
class ECA(ImageAttention):
    """x · sigmoid(conv(mean(x))): a 1-D filter over neighboring channels, `size` weights in all.

    The size follows the paper unless given: |log2(C) / 2 + 1 / 2|, made odd.
    """

    formula = "x · σ(conv₁ᵈ(mean(x)))"
    summary = "squeeze-and-excitation with a handful of weights"
    paper = "Wang et al. 2019, arXiv:1910.03151"
    use = "ECA(channels)(x)"
    order = 3

    def __init__(self, channels: int, *, size: int | None = None) -> None:
        super().__init__()
        hidden_width(channels, 1)
        if size is None:
            size = int(abs(math.log2(channels) / 2 + 0.5))
            size += 1 - size % 2
        if size < 1 or size % 2 == 0:
            raise RegardError(
                f"size: {size} is not possible; the filter's length must be odd, so that it has a middle."
            )
        self.channels = channels
        self.conv = nn.Conv1d(1, 1, size, padding=size // 2, bias=False)

    def weights(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> how much of each channel passes, [B, C]."""
        check_image(x, self.channels)
        filtered: Tensor = self.conv(x.mean((2, 3))[:, None])
        return torch.sigmoid(filtered[:, 0])

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weights(x)[:, :, None, None]
