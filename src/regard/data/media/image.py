"""Images as sources."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.data.media.base import MEDIA_PROCESSORS, Array, MediaPositions, MediaProcessor, open_media
from regard.models.settings import ImageSource

if TYPE_CHECKING:
    from torch import Tensor

    from regard.data.settings import AugmentSettings


@MEDIA_PROCESSORS.register("image")
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
        from regard.data.image_decoding import to_square_array

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

    def positions(self, array: Array, count: int) -> MediaPositions:
        grid = self.settings.grid
        labels = tuple(f"{index // grid + 1}, {index % grid + 1}" for index in range(count))
        return MediaPositions(labels, "cells", "image", self.reshape(np.asarray(array)))

    def example(self) -> Array:
        """A gray image."""
        return self.read(np.full((64, 64), 128, np.uint8))

    def augment(self, source: "Tensor", mask: "Tensor", settings: "AugmentSettings", key: int) -> "Tensor":
        from regard.data.augmentation import augment_images

        return augment_images(source, settings, key)
