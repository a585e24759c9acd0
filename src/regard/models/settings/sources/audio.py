"""Audio as a source: log-mel frames."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from regard.models.settings.components import SOURCES, Size, SourceSettings, StemOptions

if TYPE_CHECKING:
    from regard.models.stems import Stem


@SOURCES.register("audio")
class AudioSource(SourceSettings):
    """Recordings as log-mel frames, several of which become one position.

    subsampling: frames per position; each convolution halves their number, as does each layer of a pyramid.
    """

    description: ClassVar[str] = "recordings"

    kind: Literal["audio"] = "audio"
    sample_rate: Annotated[int, Field(ge=4000, le=48000)] = 16_000  # others are resampled
    mel_bins: Annotated[int, Field(ge=8, le=256)] = 80
    window: Annotated[float, Field(gt=0, le=0.2)] = 0.025  # seconds
    hop: Annotated[float, Field(gt=0, le=0.1)] = 0.010  # seconds between frames
    max_seconds: Annotated[float, Field(gt=0, le=600)] = 30.0  # longer recordings are rejected
    subsampling: Literal[1, 2, 4, 8] = 4  # by convolutions
    channels: Size = 32  # of these convolutions

    @property
    def summary(self) -> str:
        return f"{self.mel_bins} mel bands at {self.sample_rate:,} samples a second"

    def build_stem(self, options: StemOptions, vocabulary: int) -> "Stem":
        from regard.models.stems.audio import AudioStem

        return AudioStem(self, options)
