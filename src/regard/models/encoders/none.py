"""No encoder: the stem's output is the memory."""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from regard.models.outputs import EncoderOutput, masked_mean

if TYPE_CHECKING:
    from regard.models.settings.components import EncoderSettings
    from regard.models.stems import Stem


class IdentityEncoder(nn.Module):
    """A source -> EncoderOutput of its stem's output [B, T, E]."""

    def __init__(self, settings: "EncoderSettings", stem: "Stem") -> None:
        super().__init__()
        self.memory_width = settings.embedding_width
        self.embedding = stem

    def forward(self, source: Tensor, mask: Tensor, *, need_weights: bool = False) -> EncoderOutput:
        """source and mask -> EncoderOutput, without attention weights."""
        x, mask = self.embedding.read(source, mask)
        return EncoderOutput(states=x, mask=mask, pooled=masked_mean(x, mask), values=x)
