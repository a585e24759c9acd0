"""Images as a source: patches, or the cells of a convolutional network."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from regard.attention.channels import CHANNELS
from regard.errors import RegardError
from regard.models.settings.components import SOURCES, Size, SourceSettings, StemOptions
from regard.settings import Settings, registered

if TYPE_CHECKING:
    from regard.models.stems import Stem

ChannelAttention = Annotated[str, registered(CHANNELS, also=("none",))]


class PatchStemSettings(Settings):
    """An image divided into square patches, each one position (Dosovitskiy et al. 2020, arXiv:2010.11929)."""

    kind: Literal["patches"] = "patches"
    patch_size: Size = 8  # pixels of a side

    def grid(self, size: int) -> int:
        """Positions along a side of an image of this size."""
        return size // self.patch_size

    def check(self, size: int) -> None:
        """Raise RegardError if it cannot divide images of this size."""
        if size % self.patch_size:
            raise RegardError(f"patches of {self.patch_size} pixels do not divide an image of {size}")

    @property
    def summary(self) -> str:
        return self.kind

    def build(self, source: "ImageSource", options: StemOptions) -> "Stem":
        """The module."""
        from regard.models.stems.image import PatchStem

        return PatchStem(source, self, options.width, dropout=options.dropout)


class ResidualStemSettings(Settings):
    """Residual convolutions (He et al. 2015, arXiv:1512.03385), with channel attention by name.

    Each of `widths` is a stage of `blocks` blocks; every stage but the first halves the image.
    """

    kind: Literal["residual"] = "residual"
    widths: Annotated[tuple[Size, ...], Field(min_length=1, max_length=6)] = (32, 64, 128)
    blocks: Size = 1
    stride: Literal[1, 2, 4] = 2  # of the first convolution
    channel_attention: ChannelAttention = "none"  # after the convolutions of every block
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0

    def grid(self, size: int) -> int:
        """Positions along a side of an image of this size."""
        return size // self.stride >> (len(self.widths) - 1)

    def check(self, size: int) -> None:
        """Raise RegardError if it cannot read images of this size."""
        if self.grid(size) < 1:
            raise RegardError(f"images of {size} pixels cannot be halved so often; use fewer widths")

    @property
    def summary(self) -> str:
        with_attention = "" if self.channel_attention == "none" else f" with {self.channel_attention}"
        return f"{self.kind}{with_attention}"

    def build(self, source: "ImageSource", options: StemOptions) -> "Stem":
        """The module."""
        from regard.models.stems.image import ResidualStem

        return ResidualStem(source, self, options.width, dropout=options.dropout)


@SOURCES.register("image")
class ImageSource(SourceSettings):
    """Images, scaled to squares of `size` pixels."""

    description: ClassVar[str] = "images"

    kind: Literal["image"] = "image"
    size: Annotated[int, Field(ge=8, le=1024)] = 64
    color: bool = True
    stem: Annotated[PatchStemSettings | ResidualStemSettings, Field(discriminator="kind")] = ResidualStemSettings()

    @property
    def summary(self) -> str:
        return f"{self.stem.summary} over {self.size} × {self.size} pixels"

    @property
    def channels(self) -> int:
        """3 for color, 1 for grayscale."""
        return 3 if self.color else 1

    @property
    def grid(self) -> int:
        """Positions along a side."""
        return self.stem.grid(self.size)

    @property
    def convolves(self) -> bool:
        return True

    @model_validator(mode="after")
    def _check_size(self) -> "ImageSource":
        self.stem.check(self.size)
        return self

    def build_stem(self, options: StemOptions, vocabulary: int) -> "Stem":
        return self.stem.build(self, options)
