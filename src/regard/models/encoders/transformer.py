"""The Transformer's encoder: every position attends to every other, or to its neighborhood (Vaswani et al. 2017)."""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from regard.models.outputs import EncoderOutput, Packing, masked_mean
from regard.models.token_embedding import Embedding
from regard.models.transformer_layers import build_layers, depth_embedding, padding_mask

if TYPE_CHECKING:
    from regard.models.settings.encoders.transformer import TransformerEncoderSettings
    from regard.models.stems import Stem


class TransformerEncoder(nn.Module):
    """tokens [B, T] -> EncoderOutput with states [B, T, D]."""

    def __init__(self, settings: "TransformerEncoderSettings", stem: "Stem") -> None:
        super().__init__()
        self.memory_width = settings.width
        self.embedding = stem
        E, D = settings.embedding_width, settings.width
        self.input_projection = nn.Linear(E, D) if E != D else nn.Identity()
        self.layers = build_layers(settings, causal=False)
        self.depth = depth_embedding(settings)
        self.norm = settings.build_norm(D) if settings.norm_first else nn.Identity()

    def forward(
        self, tokens: Tensor, mask: Tensor, *, packing: Packing | None = None, need_weights: bool = False
    ) -> EncoderOutput:
        """tokens and mask [B, T] -> EncoderOutput. packing: several texts in one row."""
        if packing is None:
            x, mask = self.embedding.read(tokens, mask)
        else:
            assert isinstance(self.embedding, Embedding)
            x, mask = self.embedding.read(tokens, mask, packing.position)
        attention_mask = padding_mask(mask) if packing is None or packing.mask is None else packing.mask
        x = self.input_projection(x)
        weights: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            if self.depth is not None:
                x = x + self.depth[number]
            x, _, attention = layer(x, mask=attention_mask, need_weights=need_weights)
            if attention.self_attention is not None:
                weights.append(attention.self_attention)
        x = self.norm(x)
        return EncoderOutput(states=x, mask=mask, pooled=masked_mean(x, mask), values=x, self_attention=weights)
