"""Sources that are not text, as arrays: images and recordings. Imports no PyTorch until a recording is read.

A file is decoded only as one of the known formats, and only after its size was checked by its header; each error is one
sentence.
"""

import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.models.settings import AudioSource, ImageSource, NoSource, SourceSettings

Array = NDArray[Any]
MAX_FILE_BYTES = 64 << 20


class DecodedMedia(NamedTuple):
    """A source that was decoded before, and its name."""

    array: Array
    name: str


class MediaProcessor(ABC):
    """A modality of sources other than text. Arrays are stored flat, as `dtype`."""

    plural_name: ClassVar[str]
    dtype: ClassVar[type[np.generic]]
    suffixes: ClassVar[tuple[str, ...]]

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


class ImageProcessor(MediaProcessor):
    """Images as squares: scaled to fit and padded with gray; transparent pixels are white."""

    plural_name = "pictures"
    dtype = np.uint8
    suffixes = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")

    def __init__(self, settings: ImageSource) -> None:
        self.settings = settings
        self.shape = (settings.channels, settings.size, settings.size)

    def read(self, media: Any) -> Array:
        """[C, S, S], uint8."""
        from regard.data.images import to_square_array

        return to_square_array(
            media if isinstance(media, np.ndarray) or hasattr(media, "convert") else open_media(media), self
        )

    def reshape(self, flat: Array) -> Array:
        return flat.reshape(self.shape)

    def position_counts(self, lengths: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.full(len(lengths), self.settings.grid**2, np.int32)

    def collate(self, arrays: Sequence[Array]) -> tuple[Array, Array]:
        pixels = np.stack([self.reshape(np.asarray(each)) for each in arrays]).astype(np.float32)
        return pixels / 127.5 - 1, np.ones((len(arrays), self.settings.grid**2), bool)


class AudioProcessor(MediaProcessor):
    """Recordings as log-mel frames, each recording with mean 0 and variance 1."""

    plural_name = "recordings"
    dtype = np.float16
    suffixes = (".wav", ".flac", ".ogg", ".oga", ".opus")

    def __init__(self, settings: AudioSource) -> None:
        self.settings = settings

    def read(self, media: Any) -> Array:
        """[frames, mels], float16."""
        from regard.data.audio import log_mel_frames, read_samples

        has_samples = isinstance(media, np.ndarray | tuple)
        return log_mel_frames(media if has_samples else read_samples(open_media(media), self.settings), self.settings)

    def to_wav(self, media: Any) -> bytes:
        """The recording as a WAV file at the model's sample rate, which any browser plays."""
        from regard.data.audio import encode_wav, read_samples

        has_samples = isinstance(media, np.ndarray | tuple)
        return encode_wav(media if has_samples else read_samples(open_media(media), self.settings), self.settings)

    def reshape(self, flat: Array) -> Array:
        return flat.reshape(-1, self.settings.mel_bins)

    def position_counts(self, lengths: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.maximum(1, lengths // (self.settings.mel_bins * self.settings.subsampling)).astype(np.int32)

    def collate(self, arrays: Sequence[Array]) -> tuple[Array, Array]:
        recordings = [self.reshape(np.asarray(each)) for each in arrays]
        max_length = max(map(len, recordings))
        frames = np.zeros((len(recordings), max_length, self.settings.mel_bins), np.float32)
        mask = np.zeros((len(recordings), max_length), bool)
        for row, each in enumerate(recordings):
            frames[row, : len(each)], mask[row, : len(each)] = each, True
        return frames, mask


class EmptyProcessor(MediaProcessor):
    """No source: for decoder-only language models."""

    plural_name = "nothing"
    dtype = np.uint8
    suffixes = ()

    def read(self, media: Any) -> Array:
        return np.zeros(0, np.uint8)

    def reshape(self, flat: Array) -> Array:
        return flat

    def position_counts(self, lengths: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.zeros(len(lengths), np.int32)

    def collate(self, arrays: Sequence[Array]) -> tuple[Array, Array]:
        return np.zeros((len(arrays), 0), np.int64), np.ones((len(arrays), 0), bool)


def media_processor(source: SourceSettings) -> MediaProcessor | None:
    """The medium of a model's source; None for text."""
    if isinstance(source, NoSource):
        return EmptyProcessor()
    if isinstance(source, ImageSource):
        return ImageProcessor(source)
    return AudioProcessor(source) if isinstance(source, AudioSource) else None


def open_media(media: Path | str | bytes) -> io.BytesIO:
    """A file's bytes, or bytes. Raises RegardError if there is no such file, or it is too large."""
    if isinstance(media, bytes):
        size, name = len(media), "the file"
    else:
        path, name = Path(media), str(media)
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
