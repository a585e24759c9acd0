"""The Transformer's encoder: every place attends to every other, or to its neighbourhood (Vaswani et al. 2017)."""

from torch import Tensor, nn

from regard.models.embedding import Embedding
from regard.models.outputs import Memory, Packing, average
from regard.models.settings import TransformerEncoder as TransformerEncoderSettings
from regard.models.stems import stem
from regard.models.transformer_layers import depths, keys_mask, norm, stacked
from regard.sources import Source, Text


class TransformerEncoder(nn.Module):
    """tokens [B, T] -> Memory with states [B, T, D]."""

    def __init__(self, settings: TransformerEncoderSettings, vocabulary: int, source: Source | None = None) -> None:
        super().__init__()
        self.memory_width = settings.width
        self.embedding = stem(settings, source or Text(), vocabulary)
        E, D = settings.embedding_width, settings.width
        self.inward = nn.Linear(E, D) if E != D else nn.Identity()
        self.layers = stacked(settings, causal=False)
        self.depth = depths(settings)
        self.norm = norm(settings) if settings.norm_place == "pre" else nn.Identity()

    def forward(
        self, tokens: Tensor, mask: Tensor, *, packing: Packing | None = None, need_weights: bool = False
    ) -> Memory:
        """tokens and mask [B, T] -> Memory. packing: of several texts in a row."""
        if packing is None:
            x, mask = self.embedding.read(tokens, mask)
        else:
            assert isinstance(self.embedding, Embedding)
            x, mask = self.embedding.read(tokens, mask, packing.place)
        keys = keys_mask(mask) if packing is None or packing.mask is None else packing.mask
        x = self.inward(x)
        own: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            if self.depth is not None:
                x = x + self.depth[number]
            x, _, look = layer(x, mask=keys, need_weights=need_weights)
            if look.own is not None:
                own.append(look.own)
        x = self.norm(x)
        return Memory(states=x, mask=mask, summary=average(x, mask), values=x, own=own)
