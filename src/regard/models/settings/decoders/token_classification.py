"""Settings of the head that tags words."""

from typing import ClassVar, Literal

from regard.models.settings._per_position import PerPositionHeadSettings
from regard.models.settings.components import DECODERS


@DECODERS.register("token-classification")
class TokenClassificationHeadSettings(PerPositionHeadSettings):
    """A tag of every word, at its first token."""

    predicts: ClassVar[str] = "tags"

    kind: Literal["token-classification"] = "token-classification"
