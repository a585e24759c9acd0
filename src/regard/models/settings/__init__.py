"""Settings of models: what is read, any encoder, any decoder or head. Imports no PyTorch.

`model.py` has `ModelSettings`, `components.py` the base classes and registries; one file per component in `encoders/`,
`decoders/` and `sources/`.
"""

from regard.models.settings.components import (
    DECODERS,
    ENCODERS,
    SOURCES,
    DecoderSettings,
    EncoderSettings,
    SourceSettings,
    StemOptions,
)
from regard.models.settings.decoders.convolutional import ConvolutionalDecoder
from regard.models.settings.decoders.recurrent import RecurrentDecoder
from regard.models.settings.decoders.transformer import TransformerDecoder
from regard.models.settings.encoders.convolutional import ConvolutionalEncoder
from regard.models.settings.encoders.recurrent import RecurrentEncoder
from regard.models.settings.encoders.transformer import TransformerEncoder
from regard.models.settings.model import Architecture, ModelSettings
from regard.models.settings.sources.audio import AudioSource
from regard.models.settings.sources.image import ImageSource
from regard.models.settings.sources.none import NoSource
from regard.models.settings.sources.text import TextSource

__all__ = [
    "DECODERS",
    "ENCODERS",
    "SOURCES",
    "Architecture",
    "AudioSource",
    "ConvolutionalDecoder",
    "ConvolutionalEncoder",
    "DecoderSettings",
    "EncoderSettings",
    "ImageSource",
    "ModelSettings",
    "NoSource",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "SourceSettings",
    "StemOptions",
    "TextSource",
    "TransformerDecoder",
    "TransformerEncoder",
]
