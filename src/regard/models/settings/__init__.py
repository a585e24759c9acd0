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
from regard.models.settings.decoders.convolutional import ConvolutionalDecoderSettings
from regard.models.settings.decoders.recurrent import RecurrentDecoderSettings
from regard.models.settings.decoders.transformer import TransformerDecoderSettings
from regard.models.settings.encoders.convolutional import ConvolutionalEncoderSettings
from regard.models.settings.encoders.recurrent import RecurrentEncoderSettings
from regard.models.settings.encoders.transformer import TransformerEncoderSettings
from regard.models.settings.model import Architecture, ModelSettings
from regard.models.settings.sources.audio import AudioSource
from regard.models.settings.sources.image import ImageSource
from regard.models.settings.sources.none import NoSource
from regard.models.settings.sources.series import SeriesSource
from regard.models.settings.sources.text import TextSource

__all__ = [
    "DECODERS",
    "ENCODERS",
    "SOURCES",
    "Architecture",
    "AudioSource",
    "ConvolutionalDecoderSettings",
    "ConvolutionalEncoderSettings",
    "DecoderSettings",
    "EncoderSettings",
    "ImageSource",
    "ModelSettings",
    "NoSource",
    "RecurrentDecoderSettings",
    "RecurrentEncoderSettings",
    "SeriesSource",
    "SourceSettings",
    "StemOptions",
    "TextSource",
    "TransformerDecoderSettings",
    "TransformerEncoderSettings",
]
