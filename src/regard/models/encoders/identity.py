"""No encoder: what was read is attended to as it is."""

from torch import Tensor, nn

from regard.models.outputs import Memory, average
from regard.models.settings import NoEncoder
from regard.models.stems import stem
from regard.sources import Source, Text


class PlainEncoder(nn.Module):
    """A source -> Memory of its stem's places [B, T, E]."""

    def __init__(self, settings: NoEncoder, vocabulary: int, source: Source | None = None) -> None:
        super().__init__()
        self.memory_width = settings.embedding_width
        self.embedding = stem(settings, source or Text(), vocabulary)

    def forward(self, source: Tensor, mask: Tensor, *, need_weights: bool = False) -> Memory:
        """source and mask -> Memory. It has no weights."""
        x, mask = self.embedding.read(source, mask)
        return Memory(states=x, mask=mask, summary=average(x, mask), values=x)
