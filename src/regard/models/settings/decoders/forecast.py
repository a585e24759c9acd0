"""Settings of the head that forecasts a series."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from regard.errors import RegardError
from regard.models.settings.components import DECODERS, DecoderSettings, Normalizer, PoolingScore, Share, Size

if TYPE_CHECKING:
    from torch import nn

Quantile = Annotated[float, Field(gt=0, lt=1)]


@DECODERS.register("forecast")
class ForecastHeadSettings(DecoderSettings):
    """The next `horizon` values of every column.

    pool: how positions become a forecast: `flatten` joins all of them for one linear layer (PatchTST), `position` reads
    the forecast of a column from its own position (for `source.unit = "column"`), and `attention` attends to the
    history with a learned query for each step ahead. linear_skip: a linear map from the window of each column is added
    to its forecast (the global residual connection of TiDE, Das et al. 2023, arXiv:2304.08424). quantiles: to forecast,
    in ascending order; the mean if none. columns: that are forecast. history: steps of a window. sequences: that the
    source makes of it. memory_length: positions of each.
    """

    has_output: ClassVar[bool] = False
    predicts: ClassVar[str] = "values"
    only_where: ClassVar = {
        "score": ("pool", ("attention",)),
        "normalize": ("pool", ("attention",)),
        "heads": ("pool", ("attention",)),
    }

    kind: Literal["forecast"] = "forecast"
    horizon: Size = 24
    columns: Size = 1
    history: Size = 1
    sequences: Size = 1
    memory_length: Size = 1
    pool: Literal["flatten", "position", "attention"] = "flatten"
    linear_skip: bool = False
    head_dropout: Share = 0.0
    score: PoolingScore = "scaled-dot"
    normalize: Normalizer = "softmax"
    heads: Size = 1
    quantiles: tuple[Quantile, ...] = ()

    @field_validator("quantiles")
    @classmethod
    def _ascending(cls, quantiles: tuple[float, ...]) -> tuple[float, ...]:
        if list(quantiles) != sorted(set(quantiles)):
            raise RegardError(f"quantiles: {list(quantiles)} must be different, in ascending order")
        return quantiles

    @property
    def outputs(self) -> int:
        """Numbers for each forecast value: a quantile each, or the mean."""
        return max(1, len(self.quantiles))

    def build(self, vocabulary: int, memory_width: int | None) -> "nn.Module":
        from regard.models.heads.forecast import ForecastHead

        assert memory_width is not None
        return ForecastHead(self, memory_width)
