"""Recordings as sources. PyTorch is imported when the first one is read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.data.media.base import MEDIA_PROCESSORS, Array, MediaPositions, MediaProcessor, open_media
from regard.models.settings import AudioSource

if TYPE_CHECKING:
    from torch import Tensor

    from regard.data.settings import AugmentSettings


@MEDIA_PROCESSORS.register("audio")
class AudioProcessor(MediaProcessor):
    """Recordings as log-mel frames, each recording with mean 0 and variance 1."""

    plural_name = "recordings"
    dtype = np.float16
    suffixes = (".wav", ".flac", ".ogg", ".oga", ".opus")

    def __init__(self, settings: AudioSource) -> None:
        self.settings = settings

    def read(self, media: Any) -> Array:
        """[frames, mels], float16."""
        from regard.data.audio_decoding import read_samples
        from regard.data.log_mel import log_mel_frames

        has_samples = isinstance(media, np.ndarray | tuple)
        return log_mel_frames(media if has_samples else read_samples(open_media(media), self.settings), self.settings)

    def to_wav(self, media: Any) -> bytes:
        """The recording as a WAV file at the model's sample rate, which any browser plays."""
        from regard.data.audio_decoding import encode_wav, read_samples

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

    def positions(self, array: Array, count: int) -> MediaPositions:
        frames = self.reshape(np.asarray(array))
        seconds = len(frames) * self.settings.hop / max(1, count)
        labels = tuple(f"{index * seconds:.2f} s" for index in range(count))
        shades = ((np.clip(frames.astype(np.float32), -2, 3) + 2) * 51).astype(np.uint8)
        return MediaPositions(labels, "frames", "spectrogram", shades, seconds * count)

    def example(self) -> Array:
        """A second of silence."""
        count = int(min(1.0, self.settings.max_seconds) * self.settings.sample_rate)
        return self.read(np.zeros(count, np.float32))

    def augment(self, source: "Tensor", mask: "Tensor", settings: "AugmentSettings", key: int) -> "Tensor":
        from regard.data.augmentation import spec_augment

        return spec_augment(source, mask, settings, key)
