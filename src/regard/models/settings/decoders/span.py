"""Settings of the head that finds answer spans."""

from typing import ClassVar, Literal

from regard.models.settings._per_position import PerPositionHeadSettings
from regard.models.settings.components import DECODERS


@DECODERS.register("span")
class SpanHeadSettings(PerPositionHeadSettings):
    """Whether a span starts or ends at a position: the answer to a question about a passage (Devlin et al. 2018)."""

    predicts_spans: ClassVar[bool] = True
    predicts: ClassVar[str] = "spans"

    kind: Literal["span"] = "span"
