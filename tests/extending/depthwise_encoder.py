"""An encoder: depthwise convolutions, one filter for each channel (Wu et al. 2019, arXiv:1901.10430)."""

from typing import Literal

import torch
from torch import Tensor, nn

from regard.models.outputs import EncoderOutput, masked_mean
from regard.models.settings import ENCODERS, EncoderSettings
from regard.models.stems import Stem


@ENCODERS.register("depthwise")
class DepthwiseSettings(EncoderSettings):
    """Its settings, as in `--set model.encoder.kind=depthwise --set model.encoder.kernel=7`."""

    kind: Literal["depthwise"] = "depthwise"
    kernel: int = 5

    def build(self, stem: Stem) -> nn.Module:
        return DepthwiseEncoder(self, stem)


class DepthwiseEncoder(nn.Module):
    """source and mask [B, T] -> EncoderOutput with states [B, T, width]."""

    def __init__(self, settings: DepthwiseSettings, stem: Stem) -> None:
        super().__init__()
        width = settings.width
        self.embedding, self.memory_width = stem, width
        self.project = nn.Linear(settings.embedding_width, width)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, settings.kernel, padding="same", groups=width) for _ in range(settings.layers)
        )

    def forward(self, source: Tensor, mask: Tensor, *, need_weights: bool = False) -> EncoderOutput:
        x, mask = self.embedding.read(source, mask)
        x = self.project(x)
        for layer in self.layers:
            x = x * mask[..., None]  # padding stays zero, so that the output does not depend on the batch
            x = x + torch.relu(layer(x.mT).mT)
        return EncoderOutput(states=x, mask=mask, pooled=masked_mean(x, mask), values=x)
