"""What a model reads: text, pictures, recordings or nothing, and how it becomes places to attend to.

Imports no PyTorch.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.errors import RegardError
from regard.settings import Settings

Size = Annotated[int, Field(ge=1)]
Channels = Literal["none", "se", "cbam", "eca"]


class SourceSettings(Settings):
    """What all kinds of sources share."""

    kind: str

    @property
    def summary(self) -> str:
        """What the model reads, in a few words; empty for text."""
        return ""


class Text(SourceSettings):
    """Subwords. `segments`: parts of a source, such as a story and a question, each with a vector of its own.

    `sentences`: each sentence is a part, and parts are counted from the last one back: what was said how long ago.
    `places`: what is attended to: every subword, or sentences only, each the sum of its words, as in memory networks.
    `begin`: a mark stands before every source, which comes to stand for the whole, as BERT has it. `marks`: how many
    ends a part has before the next one; RoBERTa has two.
    """

    kind: Literal["text"] = "text"
    segments: Size = 1
    sentences: bool = False
    places: Literal["subwords", "sentences"] = "subwords"
    begin: bool = False
    marks: Literal[1, 2] = 1

    @model_validator(mode="after")
    def _parts_are_told_apart(self) -> "Text":
        if self.sentences and self.segments < 2:
            raise RegardError("sentences = true needs segments: how many sentences are told apart, such as 64")
        if self.places == "sentences" and not self.sentences:
            raise RegardError("places = sentences needs sentences = true")
        return self


class Patches(Settings):
    """A picture cut into squares, each a place (Dosovitskiy et al. 2020, arXiv:2010.11929)."""

    kind: Literal["patches"] = "patches"
    patch: Size = 8  # pixels of a square's side


class Residual(Settings):
    """Residual convolutions (He et al. 2015, arXiv:1512.03385), with attention over channels and places by name.

    Each of `widths` is a stage of `blocks` blocks; every stage but the first halves the picture.
    """

    kind: Literal["residual"] = "residual"
    widths: Annotated[tuple[Size, ...], Field(min_length=1, max_length=6)] = (32, 64, 128)
    blocks: Size = 1
    stride: Literal[1, 2, 4] = 2  # of the first convolution
    attend: Channels = "none"  # se, cbam or eca after the convolutions of every block
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Images(SourceSettings):
    """Pictures, scaled to squares of `size` pixels."""

    kind: Literal["images"] = "images"
    size: Annotated[int, Field(ge=8, le=1024)] = 64
    colour: bool = True
    cut: Annotated[Patches | Residual, Field(discriminator="kind")] = Residual()

    @property
    def summary(self) -> str:
        """What the model reads, in a few words."""
        attention = getattr(self.cut, "attend", "none")
        with_ = "" if attention == "none" else f" with {attention}"
        return f"{self.cut.kind}{with_} over {self.size} × {self.size} pixels"

    @property
    def channels(self) -> int:
        """3 for colours, 1 for shades."""
        return 3 if self.colour else 1

    @property
    def grid(self) -> int:
        """Places along a side."""
        if isinstance(self.cut, Patches):
            return self.size // self.cut.patch
        return self.size // self.cut.stride >> (len(self.cut.widths) - 1)

    @model_validator(mode="after")
    def _has_places(self) -> "Images":
        if isinstance(self.cut, Patches) and self.size % self.cut.patch:
            raise RegardError(f"squares of {self.cut.patch} pixels do not divide a picture of {self.size}")
        if self.grid < 1:
            raise RegardError(f"pictures of {self.size} pixels cannot be halved so often; take fewer widths")
        return self


class Speech(SourceSettings):
    """Recordings as log-mel frames, some of which together become one place.

    `subsample`: frames to a place; halved by each convolution, or by each pyramid layer of a recurrent encoder.
    """

    kind: Literal["speech"] = "speech"
    rate: Annotated[int, Field(ge=4000, le=48000)] = 16_000  # samples a second; others are resampled
    mels: Annotated[int, Field(ge=8, le=256)] = 80
    window: Annotated[float, Field(gt=0, le=0.2)] = 0.025  # seconds
    hop: Annotated[float, Field(gt=0, le=0.1)] = 0.010  # seconds between frames
    longest: Annotated[float, Field(gt=0, le=600)] = 30.0  # seconds; longer recordings are refused
    subsample: Literal[1, 2, 4, 8] = 4  # by convolutions
    channels: Size = 32  # of these convolutions

    @property
    def summary(self) -> str:
        """What the model reads, in a few words."""
        return f"{self.mels} mel bands at {self.rate:,} samples a second"


class Nothing(SourceSettings):
    """Nothing is read: a text that goes on by itself, as a language model's does. `begin`: a mark stands before it."""

    kind: Literal["nothing"] = "nothing"
    begin: bool = True


# What is said of it: a text, a class, a class of every word, or a part of it.
Says = Literal["text", "label", "tags", "span"]
Source = Annotated[Text | Images | Speech | Nothing, Field(discriminator="kind")]
