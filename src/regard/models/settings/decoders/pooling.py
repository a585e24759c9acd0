"""Settings of the head that classifies a whole source."""

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import model_validator

from regard.errors import RegardError
from regard.models.settings.components import DECODERS, DecoderSettings, Normalizer, PoolingScore, Size

if TYPE_CHECKING:
    from torch import nn


@DECODERS.register("pooling")
class PoolingHeadSettings(DecoderSettings):
    """A class of the whole source: one vector, and a layer on it.

    pool: attention by a learned query (Yang et al. 2016), the mean, the maximum, the first position (the
    beginning-of-sequence token, as BERT has it), or nothing. encoder_state: add the encoder's own summary (of a
    recurrent one its last states).
    """

    predicts: ClassVar[str] = "classes"
    only_where: ClassVar = {"score": ("pool", ("attention",)), "normalize": ("pool", ("attention",))}

    kind: Literal["pooling"] = "pooling"
    pool: Literal["attention", "mean", "max", "first", "none"] = "attention"
    score: PoolingScore = "additive"
    normalize: Normalizer = "softmax"
    heads: Size = 1
    encoder_state: bool = True
    activation: Literal["relu", "tanh"] = "relu"

    @model_validator(mode="after")
    def _check_pool(self) -> Self:
        if self.pool == "none" and not self.encoder_state:
            raise RegardError(
                "with pool = none and encoder_state = false nothing of the source would be seen; change one"
            )
        if self.width % self.heads:
            raise RegardError(f"{self.heads} heads do not divide the width {self.width}")
        return self

    def build(self, vocabulary: int, memory_width: int | None) -> "nn.Module":
        from regard.models.heads.pooling import PoolingHead

        assert memory_width is not None
        return PoolingHead(self, memory_width)
