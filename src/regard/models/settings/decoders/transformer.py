"""Settings of the Transformer's decoder."""

from typing import TYPE_CHECKING, ClassVar, Literal

from regard.models.settings._shared import TransformerSettings
from regard.models.settings.components import DECODERS, DecoderSettings

if TYPE_CHECKING:
    from torch import nn


@DECODERS.register("transformer")
class TransformerDecoderSettings(TransformerSettings, DecoderSettings):
    """Causal self-attention, cross-attention and feed-forward layers, Vaswani et al. 2017.

    The only decoder that also works without a source, as a language model.
    """

    autoregressive: ClassVar[bool] = True
    predicts_tokens: ClassVar[bool] = True
    predicts: ClassVar[str] = "tokens"
    works_without_source: ClassVar[bool] = True

    kind: Literal["transformer"] = "transformer"
    copy_mechanism: bool = False  # tokens can be copied from the source, by the last layer's cross-attention

    @property
    def copies(self) -> bool:
        return self.copy_mechanism

    @property
    def attends_after_input(self) -> bool:
        return True

    def build(self, vocabulary: int, memory_width: int | None) -> "nn.Module":
        from regard.models.decoders.transformer import TransformerDecoder

        return TransformerDecoder(self, vocabulary, memory_width)
