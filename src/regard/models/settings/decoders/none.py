"""No decoder."""

from typing import TYPE_CHECKING, ClassVar, Literal

from regard.models.settings.components import DECODERS, DecoderSettings

if TYPE_CHECKING:
    from torch import nn


@DECODERS.register("none")
class NoDecoderSettings(DecoderSettings):
    """Nothing is predicted: an encoder alone, for embeddings or for a warm start of other models."""

    has_output: ClassVar[bool] = False
    predicts: ClassVar[str] = "nothing"

    kind: Literal["none"] = "none"

    def build(self, vocabulary: int, memory_width: int | None) -> "nn.Module":
        from regard.models.heads.none import IdentityHead

        return IdentityHead()
