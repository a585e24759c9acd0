"""What a model of series needs beside its weights: columns, step, and the scale of each column. A file of its run."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.series.table import SeriesColumns
from regard.data.series.time import Step
from regard.data.targets.base import TARGETS
from regard.errors import RegardError


@TARGETS.register("series")
@dataclass(frozen=True)
class SeriesTarget:
    """The target of forecasting.

    targets: columns that are forecast. known: columns that are known in advance. calendar: whether there are features
    of the calendar after them. mean, scale: of each column that is read, in training. horizon: steps ahead.
    step_seconds, step_months: between rows. season: steps of the shortest cycle of the calendar. naive_error: of each
    target, the mean error of repeating the last season in training, standardized.
    """

    targets: tuple[str, ...]
    known: tuple[str, ...]
    calendar: bool
    time: str
    series: str | None
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    horizon: int
    step_seconds: int
    step_months: int
    season: int
    naive_error: tuple[float, ...]

    target_file = "series.json"

    @property
    def step(self) -> Step:
        """The time between rows."""
        return Step(self.step_seconds, self.step_months)

    @property
    def columns(self) -> SeriesColumns:
        """The columns of a table to read."""
        return SeriesColumns(self.time, self.series, self.targets, self.known)

    def standardize(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Values [T, C] in units of the training data's standard deviation."""
        standardized: NDArray[np.float32] = ((values - np.array(self.mean)) / np.array(self.scale)).astype(np.float32)
        return standardized

    def restore(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Standardized values [..., C, Q] of the targets in their own units."""
        count = len(self.targets)
        mean, scale = np.array(self.mean[:count])[:, None], np.array(self.scale[:count])[:, None]
        restored: NDArray[np.float64] = np.asarray(values, np.float64) * scale + mean
        return restored

    @property
    def model(self) -> bytes:
        """The content of its file."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1).encode()

    @classmethod
    def load(cls, path: Path) -> "SeriesTarget":
        """From its file. Raises RegardError if it is missing or damaged."""
        try:
            content = json.loads(path.read_text("utf-8"))
            lists = {name: tuple(content[name]) for name in ("targets", "known", "mean", "scale", "naive_error")}
            found = SeriesTarget(**{**{each.name: content[each.name] for each in fields(SeriesTarget)}, **lists})
            sizes_fit = len(found.mean) == len(found.scale) >= len(found.targets) + len(found.known) > 0
            numbers = all(isinstance(each, int | float) and np.isfinite(each) for each in (*found.mean, *found.scale))
            sizes_fit = sizes_fit and len(found.naive_error) == len(found.targets)
            is_valid = sizes_fit and numbers and all(each > 0 for each in found.scale) and found.horizon > 0
            is_valid = is_valid and (found.step_seconds > 0) != (found.step_months > 0)
        except FileNotFoundError:
            raise RegardError(f"{path}: there is no such file.") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RegardError(f"{path}: it cannot be read ({error}).") from None
        if not is_valid:
            raise RegardError(f"{path}: it is damaged; its numbers do not fit together.")
        return found
