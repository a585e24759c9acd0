"""Stems of images: patches, or residual convolutions (He et al. 2015, arXiv:1512.03385)."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.attention.channels import CBAM, CHANNELS, ECA, SqueezeExcitation
from regard.models.attribution_point import AttributionPoint
from regard.models.dropout import Dropout

if TYPE_CHECKING:
    from regard.models.settings.sources.image import ImageSource, PatchStemSettings, ResidualStemSettings


class _GridStem(nn.Module):
    """Cells row by row, each with a learned position embedding [T, E]."""

    def __init__(self, source: "ImageSource", width: int, dropout: float) -> None:
        super().__init__()
        self.position = nn.Parameter(torch.empty(source.grid**2, width))
        self.norm = nn.LayerNorm(width)
        self.attribution_point = AttributionPoint()
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.position, std=0.3)  # large enough to distinguish positions from the start

    def _add_positions(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        """[B, E, H, W] -> [B, H W, E], and a mask that is True everywhere."""
        normalized = self.attribution_point(self.norm(cells.flatten(2).transpose(1, 2)))
        x: Tensor = self.dropout(normalized + self.position)
        return x, torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)


class PatchStem(_GridStem):
    """Patches of pixels, each projected (Dosovitskiy et al. 2020, arXiv:2010.11929)."""

    def __init__(self, source: "ImageSource", settings: "PatchStemSettings", width: int, *, dropout: float) -> None:
        super().__init__(source, width, dropout)
        size = settings.patch_size
        self.project = nn.Conv2d(source.channels, width, size, stride=size)

    def read(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """[B, C, S, S] -> [B, T, E]."""
        return self._add_positions(self.project(source))


class ResidualBlock(nn.Module):
    """Two convolutions and a shortcut; channel attention before the sum."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, channel_attention: str) -> None:
        super().__init__()
        self.conv1 = _build_convolution(in_channels, out_channels, stride)
        self.norm1 = _build_norm(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, 1, 1, bias=False)
        self.norm2 = _build_norm(out_channels)
        self.attention = _build_attention(channel_attention, out_channels)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or in_channels != out_channels:
            self.shortcut = nn.Conv2d(in_channels, out_channels, stride, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.norm1(self.conv1(x)))
        y = self.attention(self.norm2(self.conv2(y)))
        return torch.relu(y + self.shortcut(x))


class ResidualStem(_GridStem):
    """Stages of residual blocks; the last stage's positions are the cells.

    Group instead of batch normalization (Wu and He 2018, arXiv:1803.08494): the output for an image must not depend on
    its batch, in training as in inference.
    """

    def __init__(self, source: "ImageSource", settings: "ResidualStemSettings", width: int, *, dropout: float) -> None:
        super().__init__(source, width, dropout)
        self.conv1 = _build_convolution(source.channels, settings.widths[0], settings.stride)
        self.norm1 = _build_norm(settings.widths[0])
        self.blocks = nn.ModuleList()
        in_channels = settings.widths[0]
        for stage, out_channels in enumerate(settings.widths):
            for number in range(settings.blocks):
                stride = 2 if stage and not number else 1
                self.blocks.append(ResidualBlock(in_channels, out_channels, stride, settings.channel_attention))
                in_channels = out_channels
        self.channel_dropout = nn.Dropout2d(settings.dropout)
        self.project = nn.Conv2d(in_channels, width, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")

    def read(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """[B, C, S, S] -> [B, T, E]."""
        x = torch.relu(self.norm1(self.conv1(source)))
        for block in self.blocks:
            x = block(x)
        return self._add_positions(self.project(self.channel_dropout(x)))

    def channel_attention(self, source: Tensor) -> list[dict[str, Tensor]]:
        """The weights of each block's attention: "channels" [B, C] and "positions" [B, H, W], where it has them."""
        weights_by_block: list[dict[str, Tensor]] = []
        handles = []

        def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            (x,) = inputs
            if isinstance(module, CBAM):
                weights = {
                    "channels": module.channel.weights(x),
                    "positions": module.spatial.weights(module.channel(x)),
                }
            else:
                assert isinstance(module, SqueezeExcitation | ECA)
                weights = {"channels": module.weights(x)}
            weights_by_block.append(weights)

        for block in self.blocks:
            attention = block.attention
            if isinstance(attention, SqueezeExcitation | ECA | CBAM):
                handles.append(attention.register_forward_hook(hook))
        try:
            with torch.inference_mode():
                self.read(source, torch.ones(0))
        finally:
            for handle in handles:
                handle.remove()
        return weights_by_block


def _build_convolution(in_channels: int, out_channels: int, stride: int) -> nn.Conv2d:
    """The kernel is twice as wide as the stride: no pixel is skipped, and each cell is the center of what it covers."""
    size, padding = (3, 1) if stride == 1 else (2 * stride, stride // 2)
    return nn.Conv2d(in_channels, out_channels, size, stride, padding, bias=False)


def _build_attention(name: str, channels: int) -> nn.Module:
    """By name. Narrow layers are reduced less than in the papers, so that some units remain."""
    if name == "none":
        return nn.Identity()
    reduction = max(1, min(16, channels // 8))
    attention: nn.Module = CHANNELS.get(name).create(channels, reduction)
    return attention


def _build_norm(channels: int) -> nn.GroupNorm:
    groups = next(count for count in (8, 4, 2, 1) if channels % count == 0)
    return nn.GroupNorm(groups, channels)
