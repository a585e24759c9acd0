"""Settings that all heads with a prediction at every position share."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from regard.models.settings.components import DecoderSettings

if TYPE_CHECKING:
    from torch import nn


class PerPositionHeadSettings(DecoderSettings):
    """A prediction at every position of the source.

    dense: a layer, its activation and a normalization before the output, as BERT has them.
    """

    per_position: ClassVar[bool] = True

    dense: bool = True
    activation: Literal["relu", "gelu", "gelu-tanh", "tanh"] = "gelu"
    norm_epsilon: Annotated[float, Field(gt=0, lt=1)] | None = None

    def build(self, vocabulary: int, memory_width: int | None) -> "nn.Module":
        from regard.models.heads.per_position import PerPositionHead

        assert memory_width is not None
        return PerPositionHead(self, memory_width)
