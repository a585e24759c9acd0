"""Settings of the convolutional encoder."""

from typing import TYPE_CHECKING, Literal

from regard.models.settings._shared import ConvolutionalSettings
from regard.models.settings.components import ENCODERS, EncoderSettings

if TYPE_CHECKING:
    from torch import nn

    from regard.models.stems import Stem


@ENCODERS.register("convolutional")
class ConvolutionalEncoderSettings(ConvolutionalSettings, EncoderSettings):
    """Gated convolutions with residual connections, as in Gehring et al. 2017."""

    kind: Literal["convolutional"] = "convolutional"

    def build(self, stem: "Stem") -> "nn.Module":
        from regard.models.encoders.convolutional import ConvolutionalEncoder

        return ConvolutionalEncoder(self, stem)
