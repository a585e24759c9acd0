"""Sources that are not text, as arrays. Imports no PyTorch.

A file is decoded only as one of the known formats, and only after its size was checked by its header; each error is one
sentence.
"""

import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

    from regard.data.settings import AugmentSettings, DataSettings
    from regard.models.settings import SourceSettings

Array = NDArray[Any]
MAX_FILE_BYTES = 64 << 20


class DecodedMedia(NamedTuple):
    """A source that was decoded before, and its name."""

    array: Array
    name: str


MediaKind = Literal["image", "spectrogram", "series"]  # how a source is drawn


class MediaPositions(NamedTuple):
    """The positions that a model attends to in a source, for views.

    labels: of each position. unit: what a position is. kind: how the source is drawn, with `values` as bytes; None if
    it is not. seconds: its duration, if it has one.
    """

    labels: tuple[str, ...]
    unit: str = "subwords"
    kind: MediaKind | None = None
    values: Array | None = None
    seconds: float = 0.0


class MediaProcessor(ABC):
    """Reads, stores and batches sources of one modality. Arrays are stored flat, as `dtype`.

    plural_name: of the sources, in messages. suffixes: of their files.
    """

    plural_name: ClassVar[str]
    dtype: ClassVar[type[np.generic]]
    suffixes: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def __init__(self, settings: Any) -> None:
        """settings: of the model's source."""

    @classmethod
    def recognizes(cls, settings: "DataSettings") -> bool:
        """Whether the files of training data are themselves sources of this modality, not tables that name files."""
        return False

    @abstractmethod
    def read(self, media: Any) -> Array:
        """An array from a file's name, its bytes, or an object in memory (a Pillow image). Raises RegardError."""

    @abstractmethod
    def reshape(self, flat: Array) -> Array:
        """A stored array in its original shape."""

    @abstractmethod
    def position_counts(self, lengths: NDArray[np.int32]) -> NDArray[np.int32]:
        """About how many positions the encoder has for stored arrays of these lengths."""

    @abstractmethod
    def collate(self, arrays: Sequence[Array]) -> tuple[Array, Array]:
        """A padded batch of arrays, scaled to about 0, and a mask [B, T] that is False at padding."""

    @abstractmethod
    def positions(self, array: Array, count: int) -> MediaPositions:
        """The `count` positions of a source, for views."""

    @abstractmethod
    def example(self) -> Array:
        """A source to warm up with."""

    def augment(self, source: "Tensor", mask: "Tensor", settings: "AugmentSettings", key: int) -> "Tensor":
        """A batch, varied at random as a function of `key`, for training."""
        return source

    def to_wav(self, media: Any) -> bytes:
        """A recording as a WAV file, to be played; empty for other sources."""
        return b""


# By the kind of the model's source.
MEDIA_PROCESSORS: Registry[type[MediaProcessor]] = Registry("media-processor", "regard.data.media", helpers=("base",))


def media_processor(source: "SourceSettings") -> MediaProcessor | None:
    """The processor of a model's source; None for text."""
    return None if source.is_text else MEDIA_PROCESSORS.get(source.kind)(source)


def open_media(media: Path | str | bytes) -> io.BytesIO:
    """A file's bytes, or bytes. Raises RegardError if there is no such file, or it is too large."""
    if isinstance(media, bytes):
        size, name = len(media), "the file"
    else:
        path, name = Path(media), str(media)
        if "\0" in name:
            raise RegardError(f"{name[:60]!r}: there is no such file.")
        try:
            if path.exists() and not path.is_file():
                raise RegardError(f"{name}: this is not a file.")
            size = path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            raise RegardError(f"{name}: there is no such file.") from None
        except OSError as error:
            raise RegardError(f"{name}: it cannot be read ({error.strerror}).") from None
    if size > MAX_FILE_BYTES:
        raise RegardError(f"{name}: it has {size >> 20:,} MB; {MAX_FILE_BYTES >> 20} is the most that is read.")
    if not size:
        raise RegardError(f"{name}: it is empty.")
    if isinstance(media, bytes):
        return io.BytesIO(media)
    try:
        return io.BytesIO(path.read_bytes())
    except OSError as error:
        raise RegardError(f"{name}: it cannot be read ({error.strerror}).") from None
