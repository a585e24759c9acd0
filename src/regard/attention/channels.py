"""Attention in images: which channels matter, and where. Each maps any [B, C, H, W] to the same shape.

Squeeze-and-excitation: Hu et al. 2017 (arXiv:1709.01507). CBAM: Woo et al. 2018 (arXiv:1807.06521).
ECA: Wang et al. 2019 (arXiv:1910.03151). Each is its paper's equations; CBAM's published code adds biases and a batch
norm that its equations 2 and 3 do not have, and neither has this.
"""

import math

import torch
from torch import Tensor, nn

from regard.errors import RegardError


class SqueezeExcitation(nn.Module):
    """x · sigmoid(W2 relu(W1 mean(x))): the average of each channel decides how much of it passes."""

    def __init__(self, channels: int, *, reduction: int = 16) -> None:
        super().__init__()
        hidden = _hidden(channels, reduction)
        self.down = nn.Linear(channels, hidden)
        self.up = nn.Linear(hidden, channels)

    def weights(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> how much of each channel passes, [B, C]."""
        _check(x, self.down.in_features)
        return torch.sigmoid(self.up(torch.relu(self.down(x.mean((2, 3))))))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weights(x)[:, :, None, None]


class ChannelAttention(nn.Module):
    """CBAM's first half: sigmoid(MLP(mean) + MLP(max)), one network for both, without biases."""

    def __init__(self, channels: int, *, reduction: int = 16) -> None:
        super().__init__()
        hidden = _hidden(channels, reduction)
        self.down = nn.Linear(channels, hidden, bias=False)
        self.up = nn.Linear(hidden, channels, bias=False)

    def weights(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> how much of each channel passes, [B, C]."""
        _check(x, self.down.in_features)
        mean, largest = (self.up(torch.relu(self.down(pooled))) for pooled in (x.mean((2, 3)), x.amax((2, 3))))
        return torch.sigmoid(mean + largest)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weights(x)[:, :, None, None]


class SpatialAttention(nn.Module):
    """CBAM's second half: sigmoid(conv([mean over channels; max over channels])), a 7 x 7 filter."""

    def __init__(self, *, size: int = 7) -> None:
        super().__init__()
        if size < 1 or size % 2 == 0:
            raise RegardError(f"size: {size} is not possible; the filter's side must be odd, so that it has a middle.")
        self.conv = nn.Conv2d(2, 1, size, padding=size // 2, bias=False)

    def weights(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> how much of each position passes, [B, H, W]."""
        _check(x, None)
        pooled = torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)
        where: Tensor = self.conv(pooled)
        return torch.sigmoid(where[:, 0])

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weights(x)[:, None]


class CBAM(nn.Module):
    """Which channels, then where."""

    def __init__(self, channels: int, *, reduction: int = 16, size: int = 7) -> None:
        super().__init__()
        self.channel = ChannelAttention(channels, reduction=reduction)
        self.spatial = SpatialAttention(size=size)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.spatial(self.channel(x))
        return y


class ECA(nn.Module):
    """x · sigmoid(conv(mean(x))): a 1-D filter over neighboring channels, `size` weights in all.

    The size follows the paper unless given: |log2(C) / 2 + 1 / 2|, made odd.
    """

    def __init__(self, channels: int, *, size: int | None = None) -> None:
        super().__init__()
        _hidden(channels, 1)
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
        _check(x, self.channels)
        filtered: Tensor = self.conv(x.mean((2, 3))[:, None])
        return torch.sigmoid(filtered[:, 0])

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weights(x)[:, :, None, None]


def _hidden(channels: int, reduction: int) -> int:
    for name, size in (("channels", channels), ("reduction", reduction)):
        if size < 1:
            raise RegardError(f"{name}: {size} is not possible; it must be at least 1.")
    return max(1, channels // reduction)


def _check(x: Tensor, channels: int | None) -> None:
    if x.ndim != 4:
        raise RegardError(f"x: expected an image batch [B, C, H, W], got {tuple(x.shape)}.")
    if channels is not None and x.shape[1] != channels:
        raise RegardError(f"x: {x.shape[1]} channels do not fit a module made for {channels}.")
    if 0 in x.shape[1:]:
        raise RegardError(f"x: an image of shape {tuple(x.shape)} has no positions to look at.")
