"""Numeric series as sources: arrays [steps, columns], from files of numbers or from Python."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.media.base import MEDIA_PROCESSORS, Array, MediaPositions, MediaProcessor
from regard.data.series.number_files import SUFFIXES, read_numbers
from regard.data.series.table import is_series_table
from regard.data.settings import DataSettings
from regard.errors import RegardError
from regard.models.settings import SeriesSource


@MEDIA_PROCESSORS.register("series")
class SeriesProcessor(MediaProcessor):
    """Windows [steps, columns]; the last `history` steps are read. Batches are padded at the beginning."""

    plural_name = "series"
    dtype = np.float32
    suffixes = SUFFIXES

    def __init__(self, settings: SeriesSource) -> None:
        self.settings = settings

    @classmethod
    def recognizes(cls, settings: DataSettings) -> bool:
        return bool(settings.pairs) and all(map(is_series_table, settings.pairs))

    def read(self, media: Any) -> Array:
        """[T, C], float32, of a file of numbers, its bytes, or an array [T] or [T, C]."""
        if isinstance(media, np.ndarray | list):
            try:
                values = np.asarray(media, np.float32)
            except (TypeError, ValueError):
                raise RegardError("this is not an array of numbers.") from None
            values = values[:, None] if values.ndim == 1 else values
        else:
            values = read_numbers(media)
        columns = self.settings.columns
        if values.ndim != 2 or values.shape[1] != columns or not len(values):
            raise RegardError(f"its shape is {values.shape}; a series has the shape (steps, {columns}).")
        if not np.isfinite(values).all():
            raise RegardError("it has missing or infinite values.")
        return np.ascontiguousarray(values[-self.settings.history :])

    def reshape(self, flat: Array) -> Array:
        return flat.reshape(-1, self.settings.columns)

    def position_counts(self, lengths: NDArray[np.int32]) -> NDArray[np.int32]:
        steps = lengths // self.settings.columns
        return np.array([self.settings.patch_count(int(each)) for each in steps], np.int32)

    def collate(self, arrays: Sequence[Array]) -> tuple[Array, Array]:
        series = [self.reshape(np.asarray(each)) for each in arrays]
        longest = max(map(len, series))
        values = np.zeros((len(series), longest, self.settings.columns), np.float32)
        mask = np.zeros((len(series), longest), bool)
        for row, each in enumerate(series):
            values[row, longest - len(each) :], mask[row, longest - len(each) :] = each, True
        return values, mask

    def positions(self, array: Array, count: int) -> MediaPositions:
        settings, window = self.settings, self.reshape(np.asarray(array))
        if settings.unit == "column":
            labels = tuple(f"column {index + 1}" for index in range(count))
            return MediaPositions(labels, "columns", "series", _to_bytes(window))
        first = len(window) - settings.patch_length - (count - 1) * settings.patch_stride
        starts = [first + index * settings.patch_stride - len(window) for index in range(count)]
        values = _to_bytes(window[max(0, first) :, : settings.variables])
        if settings.patch_length == 1:
            return MediaPositions(tuple(map(str, starts)), "steps", "series", values)
        ends = [start + settings.patch_length - 1 for start in starts]
        labels = tuple(f"{start} to {end}" for start, end in zip(starts, ends, strict=True))
        return MediaPositions(labels, "patches", "series", values)

    def example(self) -> Array:
        """A wave."""
        steps = np.arange(self.settings.history, dtype=np.float32)
        return np.repeat(np.sin(steps / 4)[:, None], self.settings.columns, 1)


def _to_bytes(window: Array) -> NDArray[np.uint8]:
    """[T, C], each column from 0 at its smallest value to 255 at its largest."""
    low, high = window.min(0), window.max(0)
    scaled = (window - low) / np.where(high > low, high - low, 1)
    return np.asarray(np.round(255 * scaled), np.uint8)
