"""Numeric series as a source: windows of one or many columns."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from regard.errors import RegardError
from regard.models.settings.components import SOURCES, Size, SourceSettings, StemOptions

if TYPE_CHECKING:
    from regard.models.stems import Stem


@SOURCES.register("series")
class SeriesSource(SourceSettings):
    """Windows of numeric columns.

    columns: of each window. covariates: how many of the columns, the last ones, are known in advance and not forecast.
    history: steps in a window; longer ones are truncated at the beginning. unit: a position is a patch of consecutive
    steps (of a single step if patch_length is 1), or a whole column (iTransformer, Liu et al. 2023, arXiv:2310.06625).
    channels: independent makes each column a sequence of its own, with shared weights (PatchTST, Nie et al. 2022,
    arXiv:2211.14730); mixed joins all columns in each patch. instance_norm: what is subtracted from a window, column by
    column, and added to its forecast: the last value, the mean, or the mean with division by the standard deviation
    (reversible instance normalization, Kim et al. 2022, without its learned scale).
    """

    description: ClassVar[str] = "numeric series"

    kind: Literal["series"] = "series"
    columns: Size = 1
    covariates: Annotated[int, Field(ge=0)] = 0
    history: Size = 96
    unit: Literal["patch", "column"] = "patch"
    patch_length: Size = 16
    patch_stride: Size = 8
    channels: Literal["independent", "mixed"] = "independent"
    instance_norm: Literal["none", "last", "mean", "standard"] = "standard"

    @model_validator(mode="after")
    def _check_sizes(self) -> "SeriesSource":
        if self.covariates >= self.columns:
            raise RegardError(
                f"source.covariates: {self.covariates} of {self.columns} columns; at least one is forecast"
            )
        if self.unit == "patch" and self.patch_stride > self.patch_length:
            raise RegardError(
                f"source.patch_stride: {self.patch_stride} would skip steps; use at most the patch_length, "
                f"{self.patch_length}"
            )
        return self

    @property
    def variables(self) -> int:
        """The columns that are forecast."""
        return self.columns - self.covariates

    @property
    def is_channel_independent(self) -> bool:
        """Whether each column is a sequence of its own."""
        return self.unit == "patch" and self.channels == "independent"

    @property
    def positions(self) -> int:
        """Positions of a full window."""
        return self.columns if self.unit == "column" else self.patch_count(self.history)

    def patch_count(self, steps: int) -> int:
        """Patches of a window of so many steps; the last one ends at its last step."""
        return max(0, steps - self.patch_length) // self.patch_stride + 1

    @property
    def summary(self) -> str:
        unit = (
            "columns" if self.unit == "column" else f"patches of {self.patch_length}" if self.patch_length > 1 else ""
        )
        return f"{self.history:,} steps of {self.columns:,} columns{f', as {unit}' if unit else ''}"

    def build_stem(self, options: StemOptions, vocabulary: int) -> "Stem":
        from regard.models.stems.series import SeriesStem

        return SeriesStem(self, options)
