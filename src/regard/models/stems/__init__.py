"""Stems: whatever is read, tokens, pictures or frames, as a sequence of vectors that any encoder takes.

A stem has `read(source, mask) -> (x [B, T, E], mask [B, T])`. For text it is the table of embeddings.
"""

from regard.models.embedding import Embedding
from regard.models.settings import (
    ConvolutionalEncoder,
    NoEncoder,
    RecurrentEncoder,
    TransformerEncoder,
)
from regard.models.stems.images import Cells, PatchCells
from regard.models.stems.nothing import NoPlaces
from regard.models.stems.speech import Frames
from regard.models.transformer_layers import build_embedding
from regard.sources import Images, Nothing, Patches, Source, Text

Settings = RecurrentEncoder | ConvolutionalEncoder | TransformerEncoder | NoEncoder


Stem = Embedding | PatchCells | Cells | Frames | NoPlaces


def stem(settings: Settings, source: Source, vocabulary: int) -> Stem:
    """What reads this kind of source for an encoder with these settings."""
    width, dropout = settings.embedding_width, settings.dropout
    position, positions = "none", 1024
    if isinstance(settings, TransformerEncoder):
        if isinstance(source, Text):
            return build_embedding(settings, vocabulary, source)
        position, positions = settings.position, settings.positions
    elif isinstance(settings, ConvolutionalEncoder):
        position, positions = "learned", settings.positions
    if isinstance(source, Text):
        return Embedding(
            vocabulary,
            width,
            position=position,
            positions=positions,
            dropout=dropout,
            segments=source.segments,
            recent=source.sentences,
            whole=source.places == "sentences",
        )
    if isinstance(source, Nothing):
        return NoPlaces(width)
    if isinstance(source, Images):
        if isinstance(source.cut, Patches):
            return PatchCells(source, width, dropout=dropout)
        return Cells(source, width, dropout=dropout)
    return Frames(source, width, position=position, positions=positions, dropout=dropout)
