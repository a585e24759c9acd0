"""The convolutional encoder of Gehring et al. 2017 (arXiv:1705.03122, section 3).

Queries are compared with the last block's outputs z; the values are z + e, with the input embeddings e (section
3.3): a token in its context, and the token itself.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.models.dropout import Dropout
from regard.models.gated_convolution import SQRT_HALF, GatedConvolution, init_linear
from regard.models.outputs import EncoderOutput, masked_mean
from regard.models.token_embedding import Embedding

if TYPE_CHECKING:
    from regard.models.settings.encoders.convolutional import ConvolutionalEncoderSettings
    from regard.models.stems import Stem


class ConvolutionalEncoder(nn.Module):
    """tokens [B, T] -> EncoderOutput with states z and values z + e, [B, T, E]."""

    def __init__(self, settings: "ConvolutionalEncoderSettings", stem: "Stem") -> None:
        super().__init__()
        E, keep_probability = settings.embedding_width, 1 - settings.dropout
        self.memory_width = E
        self.embedding = stem
        if isinstance(self.embedding, Embedding):
            nn.init.normal_(self.embedding.weight, std=0.1)
        self.input_projection, self.output_projection = nn.Linear(E, settings.width), nn.Linear(settings.width, E)
        init_linear(self.input_projection, keep_probability)
        init_linear(self.output_projection, keep_probability)
        self.blocks = nn.ModuleList(
            GatedConvolution(settings.width, settings.kernel, causal=False, keep_probability=keep_probability)
            for _ in range(settings.layers)
        )
        self.dropout = Dropout(settings.dropout)

    def forward(self, tokens: Tensor, mask: Tensor, *, need_weights: bool = False) -> EncoderOutput:
        """tokens and mask [B, T] -> EncoderOutput, without attention weights."""
        e, mask = self.embedding.read(tokens, mask)
        present = mask[..., None]
        x = torch.where(present, self.input_projection(e), 0)
        for block in self.blocks:
            # Padding is cleared before every block, so that the output does not depend on the batch.
            x = torch.where(present, (x + block(self.dropout(x))) * SQRT_HALF, 0)
        z = self.output_projection(x)
        return EncoderOutput(states=z, mask=mask, pooled=masked_mean(z, mask), values=(z + e) * SQRT_HALF)
