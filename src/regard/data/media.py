"""Pictures and recordings as arrays: what a model reads that is not text. Imports no PyTorch until one is read.

A file is opened only as one of the formats named here, its size is known from its header and checked before anything is
unpacked, and whatever is wrong with it is one sentence.
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
MOST_BYTES = 64 << 20  # of a file


class Prepared(NamedTuple):
    """A source that was read before, and what it was called."""

    array: Array
    name: str


class Medium(ABC):
    """One kind of source. Arrays are stored flat, in elements of `element`."""

    what: ClassVar[str]
    element: ClassVar[type[np.generic]]
    suffixes: ClassVar[tuple[str, ...]]

    @abstractmethod
    def read(self, given: Any) -> Array:
        """An array from a file's name, its bytes, or what Python has of it already. Raises RegardError."""

    @abstractmethod
    def shaped(self, flat: Array) -> Array:
        """A stored array in its own shape."""

    @abstractmethod
    def places(self, lengths: NDArray[np.int32]) -> NDArray[np.int32]:
        """About how many places to attend to a stored array of each length becomes."""

    @abstractmethod
    def collated(self, arrays: Sequence[Array]) -> tuple[Array, Array]:
        """Arrays side by side, as numbers around 0, and a mask [B, T] that is True where there is something."""


class Pictures(Medium):
    """Pictures as squares: scaled to fit, the rest grey; what is transparent is white."""

    what = "pictures"
    element = np.uint8
    suffixes = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")

    def __init__(self, settings: ImageSource) -> None:
        self.settings = settings
        self.shape = (settings.channels, settings.size, settings.size)

    def read(self, given: Any) -> Array:
        """[C, S, S] in bytes."""
        from regard.data.images import to_square_array

        return to_square_array(
            given if isinstance(given, np.ndarray) or hasattr(given, "convert") else opened(given), self
        )

    def shaped(self, flat: Array) -> Array:
        return flat.reshape(self.shape)

    def places(self, lengths: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.full(len(lengths), self.settings.grid**2, np.int32)

    def collated(self, arrays: Sequence[Array]) -> tuple[Array, Array]:
        whole = np.stack([self.shaped(np.asarray(each)) for each in arrays]).astype(np.float32)
        return whole / 127.5 - 1, np.ones((len(arrays), self.settings.grid**2), bool)


class Recordings(Medium):
    """Recordings as log-mel frames, each recording with mean 0 and variance 1."""

    what = "recordings"
    element = np.float16
    suffixes = (".wav", ".flac", ".ogg", ".oga", ".opus")

    def __init__(self, settings: AudioSource) -> None:
        self.settings = settings

    def read(self, given: Any) -> Array:
        """[frames, mels] in half precision."""
        from regard.data.audio import log_mel_frames, read_samples

        whole = isinstance(given, np.ndarray | tuple)
        return log_mel_frames(given if whole else read_samples(opened(given), self.settings), self.settings)

    def sound(self, given: Any) -> bytes:
        """The recording as a WAV file that any browser plays, at the model's rate."""
        from regard.data.audio import encode_wav, read_samples

        whole = isinstance(given, np.ndarray | tuple)
        return encode_wav(given if whole else read_samples(opened(given), self.settings), self.settings)

    def shaped(self, flat: Array) -> Array:
        return flat.reshape(-1, self.settings.mel_bins)

    def places(self, lengths: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.maximum(1, lengths // (self.settings.mel_bins * self.settings.subsampling)).astype(np.int32)

    def collated(self, arrays: Sequence[Array]) -> tuple[Array, Array]:
        frames = [self.shaped(np.asarray(each)) for each in arrays]
        longest = max(map(len, frames))
        whole = np.zeros((len(frames), longest, self.settings.mel_bins), np.float32)
        mask = np.zeros((len(frames), longest), bool)
        for row, each in enumerate(frames):
            whole[row, : len(each)], mask[row, : len(each)] = each, True
        return whole, mask


class Silence(Medium):
    """Nothing at all, for a model that goes on by itself."""

    what = "nothing"
    element = np.uint8
    suffixes = ()

    def read(self, given: Any) -> Array:
        return np.zeros(0, np.uint8)

    def shaped(self, flat: Array) -> Array:
        return flat

    def places(self, lengths: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.zeros(len(lengths), np.int32)

    def collated(self, arrays: Sequence[Array]) -> tuple[Array, Array]:
        return np.zeros((len(arrays), 0), np.int64), np.ones((len(arrays), 0), bool)


def medium_of(source: SourceSettings) -> Medium | None:
    """What reads this kind of source; None for text."""
    if isinstance(source, NoSource):
        return Silence()
    if isinstance(source, ImageSource):
        return Pictures(source)
    return Recordings(source) if isinstance(source, AudioSource) else None


def opened(given: Path | str | bytes) -> io.BytesIO:
    """A file's bytes, or bytes. Raises RegardError if there is no such file, or it is too large."""
    if isinstance(given, bytes):
        size, name = len(given), "the file"
    else:
        path, name = Path(given), str(given)
        try:
            if path.exists() and not path.is_file():
                raise RegardError(f"{name}: this is not a file.")
            size = path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            raise RegardError(f"{name}: there is no such file.") from None
        except OSError as error:
            raise RegardError(f"{name}: it cannot be read ({error.strerror}).") from None
    if size > MOST_BYTES:
        raise RegardError(f"{name}: it has {size >> 20:,} MB; {MOST_BYTES >> 20} is the most that is read.")
    if not size:
        raise RegardError(f"{name}: it is empty.")
    if isinstance(given, bytes):
        return io.BytesIO(given)
    try:
        return io.BytesIO(path.read_bytes())
    except OSError as error:
        raise RegardError(f"{name}: it cannot be read ({error.strerror}).") from None
