"""The stem of audio: convolutions over time and frequency, each of which halves both (Dong et al. 2018)."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.attention.positions.base import position_embedding
from regard.models.attribution_point import AttributionPoint
from regard.models.dropout import Dropout

if TYPE_CHECKING:
    from regard.models.settings.components import StemOptions
    from regard.models.settings.sources.audio import AudioSource


class AudioStem(nn.Module):
    """[B, T, F] -> [B, T / subsampling, E]. Padding is zero before every convolution."""

    def __init__(self, source: "AudioSource", options: "StemOptions") -> None:
        super().__init__()
        halvings = source.subsampling.bit_length() - 1
        self.convolutions = nn.ModuleList()
        bands, in_channels = source.mel_bins, 1
        for _ in range(halvings):
            self.convolutions.append(nn.Conv2d(in_channels, source.channels, 3, 2, 1))
            bands, in_channels = -(-bands // 2), source.channels
        self.project = nn.Linear(bands * in_channels, options.width)
        self.norm = nn.LayerNorm(options.width)
        self.attribution_point = AttributionPoint()
        self.position = position_embedding(options.position, options.width, options.max_positions)
        self.dropout = Dropout(options.dropout)
        for convolution in self.convolutions:
            assert isinstance(convolution, nn.Conv2d)
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")

    def read(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """source [B, T, F] and mask [B, T] -> both with fewer positions."""
        x = source[:, None]  # [B, 1, T, F]
        for convolution in self.convolutions:
            x = torch.relu(convolution(x * mask[:, None, :, None]))
            mask = mask[:, ::2]
        x = self.attribution_point(self.norm(self.project(x.transpose(1, 2).flatten(2))))
        if self.position is not None:
            x = self.position(x)
        x = self.dropout(x)
        return x * mask[..., None], mask
