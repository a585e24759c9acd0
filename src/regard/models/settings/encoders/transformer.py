"""Settings of the Transformer's encoder."""

from typing import TYPE_CHECKING, Literal

from regard.models.settings._shared import TransformerSettings
from regard.models.settings.components import ENCODERS, EncoderSettings

if TYPE_CHECKING:
    from torch import nn

    from regard.models.stems import Stem


@ENCODERS.register("transformer")
class TransformerEncoderSettings(TransformerSettings, EncoderSettings):
    """Self-attention and feed-forward layers, Vaswani et al. 2017."""

    kind: Literal["transformer"] = "transformer"

    def build(self, stem: "Stem") -> "nn.Module":
        from regard.models.encoders.transformer import TransformerEncoder

        return TransformerEncoder(self, stem)
