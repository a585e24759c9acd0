"""The convolutional encoder of Gehring et al. 2017 (arXiv:1705.03122, section 3).

Queries are compared with the last block's outputs z; what is taken is z + e, with the input embeddings e (section
3.3): where a word stands in its context, and which word it is.
"""

import torch
from torch import Tensor, nn

from regard.models.dropout import Dropout
from regard.models.embedding import Embedding
from regard.models.gated_convolution import SQRT_HALF, GatedConvolution, init_linear
from regard.models.outputs import EncoderOutput, masked_mean
from regard.models.settings import ConvolutionalEncoder as ConvolutionalEncoderSettings
from regard.models.stems import stem
from regard.sources import Source, Text


class ConvolutionalEncoder(nn.Module):
    """tokens [B, T] -> EncoderOutput with states z and values z + e, [B, T, E]."""

    def __init__(self, settings: ConvolutionalEncoderSettings, vocabulary: int, source: Source | None = None) -> None:
        super().__init__()
        E, keep = settings.embedding_width, 1 - settings.dropout
        self.memory_width = E
        self.embedding = stem(settings, source or Text(), vocabulary)
        if isinstance(self.embedding, Embedding):
            nn.init.normal_(self.embedding.weight, std=0.1)
        self.inward, self.outward = nn.Linear(E, settings.width), nn.Linear(settings.width, E)
        init_linear(self.inward, keep)
        init_linear(self.outward, keep)
        self.blocks = nn.ModuleList(
            GatedConvolution(settings.width, settings.kernel, causal=False, keep=keep) for _ in range(settings.layers)
        )
        self.dropout = Dropout(settings.dropout)

    def forward(self, tokens: Tensor, mask: Tensor, *, need_weights: bool = False) -> EncoderOutput:
        """tokens and mask [B, T] -> EncoderOutput. It attends to nothing, so has no weights."""
        e, mask = self.embedding.read(tokens, mask)
        there = mask[..., None]
        x = torch.where(there, self.inward(e), 0)
        for block in self.blocks:
            # Padding is cleared before every block: a sentence's end looks the same alone and in company.
            x = torch.where(there, (x + block(self.dropout(x))) * SQRT_HALF, 0)
        z = self.outward(x)
        return EncoderOutput(states=z, mask=mask, pooled=masked_mean(z, mask), values=(z + e) * SQRT_HALF)
