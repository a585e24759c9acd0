"""Settings of the convolutional decoder."""

from typing import TYPE_CHECKING, ClassVar, Literal

from regard.models.settings._shared import ConvolutionalSettings
from regard.models.settings.components import DECODERS, DecoderSettings

if TYPE_CHECKING:
    from torch import nn


@DECODERS.register("convolutional")
class ConvolutionalDecoderSettings(ConvolutionalSettings, DecoderSettings):
    """Causal gated convolutions with attention in every block, as in Gehring et al. 2017."""

    autoregressive: ClassVar[bool] = True
    predicts_tokens: ClassVar[bool] = True
    predicts: ClassVar[str] = "tokens"

    kind: Literal["convolutional"] = "convolutional"

    def build(self, vocabulary: int, memory_width: int | None) -> "nn.Module":
        from regard.models.decoders.convolutional import ConvolutionalDecoder

        assert memory_width is not None
        return ConvolutionalDecoder(self, vocabulary, memory_width)
