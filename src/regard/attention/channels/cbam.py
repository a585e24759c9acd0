"""CBAM (Woo et al. 2018, arXiv:1807.06521).

Its published code adds biases and a batch norm that its equations 2 and 3 do not have, and neither has this.
"""

import torch
from torch import Tensor, nn

from regard.attention.channels import CHANNELS
from regard.attention.channels.base import ImageAttention, check_image, hidden_width
from regard.errors import RegardError


class ChannelAttention(ImageAttention):
    """CBAM's first half: sigmoid(MLP(mean) + MLP(max)), one network for both, without biases."""

    def __init__(self, channels: int, *, reduction: int = 16) -> None:
        super().__init__()
        hidden = hidden_width(channels, reduction)
        self.down = nn.Linear(channels, hidden, bias=False)
        self.up = nn.Linear(hidden, channels, bias=False)

    def weights(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> how much of each channel passes, [B, C]."""
        check_image(x, self.down.in_features)
        mean, largest = (self.up(torch.relu(self.down(pooled))) for pooled in (x.mean((2, 3)), x.amax((2, 3))))
        return torch.sigmoid(mean + largest)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weights(x)[:, :, None, None]


class SpatialAttention(ImageAttention):
    """CBAM's second half: sigmoid(conv([mean over channels; max over channels])), a 7 x 7 filter."""

    def __init__(self, *, size: int = 7) -> None:
        super().__init__()
        if size < 1 or size % 2 == 0:
            raise RegardError(f"size: {size} is not possible; the filter's side must be odd, so that it has a middle.")
        self.conv = nn.Conv2d(2, 1, size, padding=size // 2, bias=False)

    def weights(self, x: Tensor) -> Tensor:
        """[B, C, H, W] -> how much of each position passes, [B, H, W]."""
        check_image(x, None)
        pooled = torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)
        where: Tensor = self.conv(pooled)
        return torch.sigmoid(where[:, 0])

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weights(x)[:, None]


@CHANNELS.register("cbam")
class CBAM(ImageAttention):
    """Which channels, then where."""

    formula = "channels, then positions: x · M_c(x), then · M_s"
    summary = "which channels matter, then where"
    paper = "Woo et al. 2018, arXiv:1807.06521"
    use = "CBAM(channels)(x)"
    order = 2

    @classmethod
    def create(cls, channels: int, reduction: int) -> "CBAM":
        return cls(channels, reduction=reduction)

    def __init__(self, channels: int, *, reduction: int = 16, size: int = 7) -> None:
        super().__init__()
        self.channel = ChannelAttention(channels, reduction=reduction)
        self.spatial = SpatialAttention(size=size)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.spatial(self.channel(x))
        return y
