"""No encoder."""

from typing import TYPE_CHECKING, ClassVar, Literal

from regard.models.settings.components import ENCODERS, EncoderSettings

if TYPE_CHECKING:
    from torch import nn

    from regard.models.stems import Stem


@ENCODERS.register("none")
class NoEncoderSettings(EncoderSettings):
    """The stem's output is the memory: the cells of an image, as in "Show, attend and tell"."""

    is_identity: ClassVar[bool] = True

    kind: Literal["none"] = "none"

    def build(self, stem: "Stem") -> "nn.Module":
        from regard.models.encoders.none import IdentityEncoder

        return IdentityEncoder(self, stem)
