"""No source: decoder-only models."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.media.base import MEDIA_PROCESSORS, Array, MediaPositions, MediaProcessor
from regard.models.settings import NoSource


@MEDIA_PROCESSORS.register("none")
class EmptyProcessor(MediaProcessor):
    """No source: for decoder-only language models."""

    plural_name = "nothing"
    dtype = np.uint8

    def __init__(self, settings: NoSource | None = None) -> None:
        """There are no settings."""

    def read(self, media: Any) -> Array:
        return np.zeros(0, np.uint8)

    def reshape(self, flat: Array) -> Array:
        return flat

    def position_counts(self, lengths: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.zeros(len(lengths), np.int32)

    def collate(self, arrays: Sequence[Array]) -> tuple[Array, Array]:
        return np.zeros((len(arrays), 0), np.int64), np.ones((len(arrays), 0), bool)

    def positions(self, array: Array, count: int) -> MediaPositions:
        return MediaPositions(())

    def example(self) -> Array:
        return np.zeros(0, np.uint8)
