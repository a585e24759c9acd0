"""No encoder: what was read is attended to as it is."""

from torch import Tensor, nn

from regard.models.outputs import EncoderOutput, masked_mean
from regard.models.settings import NoEncoder
from regard.models.stems import stem
from regard.sources import Source, Text


class PlainEncoder(nn.Module):
    """A source -> EncoderOutput of its stem's places [B, T, E]."""

    def __init__(self, settings: NoEncoder, vocabulary: int, source: Source | None = None) -> None:
        super().__init__()
        self.memory_width = settings.embedding_width
        self.embedding = stem(settings, source or Text(), vocabulary)

    def forward(self, source: Tensor, mask: Tensor, *, need_weights: bool = False) -> EncoderOutput:
        """source and mask -> EncoderOutput. It has no weights."""
        x, mask = self.embedding.read(source, mask)
        return EncoderOutput(states=x, mask=mask, pooled=masked_mean(x, mask), values=x)
