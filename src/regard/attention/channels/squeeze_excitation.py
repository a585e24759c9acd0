"""Squeeze-and-excitation (Hu et al. 2017, arXiv:1709.01507)."""

import torch
from torch import Tensor, nn

from regard.attention.channels import CHANNELS
from regard.attention.channels.base import ImageAttention, check_image, hidden_width


@CHANNELS.register("squeeze-excitation", aliases=("se",))
class SqueezeExcitation(ImageAttention):
    """x · sigmoid(W2 relu(W1 mean(x))): the average of each channel decides how much of it passes."""

    formula = "x · σ(W₂ relu(W₁ mean(x)))"
    summary = "which channels matter, from the average of each"
    paper = "Hu et al. 2017, arXiv:1709.01507"
    use = "SqueezeExcitation(channels)(x)"
    order = 1

    @classmethod
    def create(cls, channels: int, reduction: int) -> "SqueezeExcitation":
        return cls(channels, reduction=reduction)

    def __init__(self, channels: int, *, reduction: int = 16) -> None:
        super().__init__()
        hidden = hidden_width(channels, reduction)
        self.down = nn.Linear(channels, hidden)
        self.up = nn.Linear(hidden, channels)

    def weights(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> how much of each channel passes, [B, C]."""
        check_image(x, self.down.in_features)
        return torch.sigmoid(self.up(torch.relu(self.down(x.mean((2, 3))))))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weights(x)[:, :, None, None]
