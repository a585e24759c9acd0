"""Windows of series: the history before each step, and the steps that follow it.

values.npy     standardized columns [rows, C] of all series, one after the other, missing values filled in
targets.npy    the columns to forecast, NaN where they are missing
series.json    the name, the first row and the start of each series
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.data.dataset_kinds.base import DatasetKind, Prompt
from regard.data.example import Layout
from regard.data.media.base import DecodedMedia
from regard.data.series.regular import (
    RegularSeries,
    calendar_features,
    describe_report,
    regular_series,
    season_length,
)
from regard.data.series.table import SeriesColumns, SeriesTable, read_series_table
from regard.data.series.time import Step, format_time
from regard.data.settings import DataSettings
from regard.data.targets.base import Target
from regard.data.targets.series import SeriesTarget
from regard.errors import RegardError
from regard.models.settings import SeriesSource, SourceSettings

if TYPE_CHECKING:
    from regard.data.batch import Batch
    from regard.data.corpus import Corpus

VALID_SHARE = 0.15  # of each series, its end, where no validation files are named
MIN_SCALE = 1e-8  # of a standard deviation, relative to the mean: smaller ones are those of a constant column
SHOWN_VALUES = 6  # of a validation example, in reports


@dataclass(frozen=True)
class SeriesDataset:
    """Windows by number, memory-mapped."""

    values: NDArray[np.float32]  # [rows, C]
    targets: NDArray[np.float32]  # [rows, V]
    series: list[dict[str, Any]]  # name, first, rows, start of each series
    index: NDArray[np.int64]  # [N]: the first row that is forecast
    history: int
    horizon: int
    step: Step

    def __len__(self) -> int:
        return len(self.index)

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        """One target for each window."""
        return np.ones(len(self.index), np.int32)

    @cached_property
    def first_rows(self) -> NDArray[np.int64]:
        """The first row of each series."""
        return np.array([each["first"] for each in self.series], np.int64)

    def _series(self, row: int) -> dict[str, Any]:
        return self.series[int(np.searchsorted(self.first_rows, row, "right")) - 1]

    def origin(self, number: int) -> int:
        """The row of a window's first forecast value."""
        return int(self.index[number])

    def window(self, number: int) -> NDArray[np.float32]:
        """[T, C]: the history of a window."""
        row = int(self.index[number])
        return self.values[max(row - self.history, int(self._series(row)["first"])) : row]

    def future(self, number: int) -> NDArray[np.float32]:
        """[H, V]: what follows it."""
        row = int(self.index[number])
        return self.targets[row : row + self.horizon]

    def text(self, number: int) -> str:
        """The series and the first time of a forecast."""
        row = int(self.index[number])
        series = self._series(row)
        offset = row - int(series["first"])
        time = self.step.after(int(series["start"]), offset)[-1] if offset else int(series["start"])
        name = f"{series['name']}, " if series["name"] else ""
        return f"{name}from {format_time(int(time), self.step)}"


class SeriesWindows(DatasetKind):
    """The history of every step, and the steps after it."""

    has_pairs = False
    reads_series = True
    target_file = SeriesTarget.target_file

    def load_target(self, path: Path) -> Target:
        return SeriesTarget.load(path)

    def prepare(self, settings: DataSettings, folder: Path, fingerprint: str, source: SourceSettings) -> bool:
        assert isinstance(source, SeriesSource)
        assert settings.series.horizon is not None
        report: Counter[str] = Counter()
        chosen = settings.series
        given = SeriesColumns(chosen.time, chosen.series, chosen.targets, chosen.known)
        tables = [read_series_table(path, given) for path in settings.pairs]
        columns = tables[0].columns
        train = _all_series(tables, columns, None, report)
        own_valid = bool(settings.valid_pairs)
        target = _fit_target(train, columns, settings, own_valid, report)
        stored = _write(folder, "train", train, target)
        if own_valid:
            tables = [read_series_table(path, target.columns) for path in settings.valid_pairs]
            valid = _write(folder, "valid", _all_series(tables, columns, target.step, report), target)
            indices = {"train": [_windows(each, source.history, target.horizon) for each in stored]}
            indices["valid"] = [_windows(each, source.history, target.horizon) for each in valid]
        else:
            pairs = [_split_windows(each, source.history, target.horizon) for each in stored]
            indices = {"train": [each for each, _ in pairs], "valid": [each for _, each in pairs]}
        for name, index in indices.items():
            _check_windows(name, index, train, target.horizon, settings.pairs[0])
            np.save(folder / f"{name}.index.npy", np.concatenate(index))
        (folder / self.target_file).write_bytes(target.model)
        notes = [_describe_columns(target), *describe_report(report)]
        metadata = {"fingerprint": fingerprint, "own_valid": own_valid, "rejected": {}, "notes": notes}
        (folder / "corpus.json").write_text(json.dumps(metadata, ensure_ascii=False, indent=2))
        return True

    def open(self, folder: Path, name: str, index: str, source: SourceSettings, max_tokens: int) -> SeriesDataset:
        assert isinstance(source, SeriesSource)
        target = SeriesTarget.load(folder / self.target_file)
        arrays = [np.load(folder / f"{name}.{part}.npy", mmap_mode="r") for part in ("values", "targets")]
        series = json.loads((folder / f"{name}.series.json").read_text())
        numbers = np.load(folder / f"{index}.index.npy", mmap_mode="r")
        return SeriesDataset(arrays[0], arrays[1], series, numbers, source.history, target.horizon, target.step)

    def plan(self, dataset: SeriesDataset, *, tokens: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """Batches of `tokens` windows, in random order."""
        order = np.random.default_rng((abs(seed), epoch)).permutation(len(dataset))
        return [order[start : start + tokens] for start in range(0, len(order), tokens)]

    def collate(
        self,
        corpus: "Corpus",
        dataset: SeriesDataset,
        numbers: NDArray[np.int64],
        settings: DataSettings | None,
        key: int,
    ) -> "Batch":
        import torch

        from regard.data.batch import Batch, collate_sources

        source, mask = collate_sources(corpus.source_processor, [dataset.window(int(each)) for each in numbers])
        values = torch.from_numpy(np.stack([dataset.future(int(each)) for each in numbers]))
        labels = torch.ones(len(numbers), 1, dtype=torch.int64)
        return Batch(source, mask, torch.zeros_like(labels), labels, numbers, values=values)

    def describe_columns(self, path: Path, layout: Layout) -> str:
        return ""

    def prompt(self, dataset: SeriesDataset, number: int) -> Prompt:
        # Spread over the set, since neighboring windows are nearly the same.
        number = number * 997 % len(dataset)
        reference = " ".join(f"{value:.2f}" for value in dataset.future(number)[:SHOWN_VALUES, 0])
        return Prompt(dataset.text(number), reference, DecodedMedia(dataset.window(number), dataset.text(number)))


def _valid_rows(rows: int, horizon: int) -> int:
    """Rows at the end of a series that are held out for validation."""
    return max(horizon, round(VALID_SHARE * rows))


def _all_series(
    tables: Sequence[SeriesTable], columns: SeriesColumns, step: Step | None, report: Counter[str]
) -> list[RegularSeries]:
    found: list[RegularSeries] = []
    for table in tables:
        if table.columns.targets != columns.targets or table.columns.known != columns.known:
            raise RegardError(
                f"{table.path}: its columns are {', '.join(table.columns.targets)}, not {', '.join(columns.targets)}."
            )
        found += regular_series(table, step or (found[0].step if found else None), report)
    return found


def _covariates(
    series: RegularSeries, calendar: bool, horizon: int, targets: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A series with what is known in advance: [T, C] with NaN where values are missing, and the same filled.

    Columns that are known in advance are shifted by the horizon, so that the window before a forecast has those of the
    steps that are forecast.
    """
    parts = [(series.values[:, :targets], series.filled[:, :targets])]
    ahead = np.concatenate([series.times(), series.step.after(int(series.times()[-1]), horizon)])
    if series.values.shape[1] > targets:
        known = np.concatenate([series.filled[horizon:, targets:], np.repeat(series.filled[-1:, targets:], horizon, 0)])
        parts.append((known[: len(series)], known[: len(series)]))
    if calendar:
        features = calendar_features(ahead, series.step)[1][horizon : horizon + len(series)]
        parts.append((features, features))
    return np.concatenate([each for each, _ in parts], 1), np.concatenate([each for _, each in parts], 1)


def model_input(series: RegularSeries, target: SeriesTarget) -> NDArray[np.float32]:
    """The standardized columns [T, C] of a series that a model reads."""
    filled = _covariates(series, target.calendar, target.horizon, len(target.targets))[1]
    return target.standardize(filled)


def _write(folder: Path, name: str, series: list[RegularSeries], target: SeriesTarget) -> list[dict[str, Any]]:
    """Store the columns of all series. Returns where each is."""
    stored, values, targets, first = [], [], [], 0
    for each in series:
        stored.append({"name": each.name, "first": first, "rows": len(each), "start": each.start})
        first += len(each)
        values.append(model_input(each, target))
        raw = each.values[:, : len(target.targets)]
        targets.append(((raw - target.mean[: raw.shape[1]]) / target.scale[: raw.shape[1]]).astype(np.float32))
    np.save(folder / f"{name}.values.npy", np.concatenate(values))
    np.save(folder / f"{name}.targets.npy", np.concatenate(targets))
    (folder / f"{name}.series.json").write_text(json.dumps(stored, ensure_ascii=False))
    return stored


def _windows(stored: dict[str, Any], history: int, horizon: int) -> NDArray[np.int64]:
    """The first forecast row of each window: after a whole history, or after half of what a shorter series has."""
    rows = int(stored["rows"])
    first = history if rows >= history + horizon else max(1, (rows - horizon) // 2)
    return np.arange(first, rows - horizon + 1, dtype=np.int64) + int(stored["first"])


def _split_windows(stored: dict[str, Any], history: int, horizon: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Windows to learn from, and those that forecast the end of the series, for validation."""
    held_out = stored["first"] + stored["rows"] - _valid_rows(stored["rows"], horizon)
    index = _windows(stored, history, horizon)
    return index[index + horizon <= held_out], index[index >= held_out]


def _check_windows(
    name: str, index: Sequence[NDArray[np.int64]], series: Sequence[RegularSeries], horizon: int, path: Path
) -> None:
    """Raise RegardError if there is no window."""
    if not any(map(len, index)):
        what = "to learn from" if name == "train" else "to validate with"
        raise RegardError(
            f"{path}: no series is long enough {what}; the longest has {max(map(len, series)):,} rows, and a forecast "
            f"of {horizon:,} needs several times as many: set a smaller --horizon or --history."
        )


def _describe_columns(target: SeriesTarget) -> str:
    parts = {"time column": [target.time], "series": [target.series] if target.series else [], "known": target.known}
    parts["forecast"] = target.targets
    return "; ".join(f"{what} {', '.join(names)}" for what, names in parts.items() if names)


def _fit_target(
    series: Sequence[RegularSeries],
    columns: SeriesColumns,
    settings: DataSettings,
    own_valid: bool,
    report: Counter[str],
) -> SeriesTarget:
    """The scale of each column, by the rows to learn from. Raises RegardError for a column without numbers."""
    calendar, horizon = settings.series.calendar, settings.series.horizon
    assert horizon is not None
    count = len(columns.targets)
    ends = [len(each) if own_valid else max(1, len(each) - _valid_rows(len(each), horizon)) for each in series]
    parts = [_covariates(each, calendar, horizon, count)[0][:end] for each, end in zip(series, ends, strict=True)]
    rows = np.concatenate(parts)
    present = np.isfinite(rows).any(0)
    if not present.all():
        name = [*columns.targets, *columns.known][int(present.argmin())]
        raise RegardError(f"{settings.pairs[0]}: the column {name!r} has no number to learn from.")
    mean, deviation = np.nanmean(rows, 0), np.nanstd(rows, 0)
    constant = (deviation <= MIN_SCALE * np.abs(mean)) | (deviation == 0)
    season = season_length(series[0].step)
    scale = np.where(constant, 1.0, deviation)
    naive = _naive_errors([each[:, :count] for each in parts], season) / scale[:count]
    report["constant columns"] += int(constant[:count].sum())
    return SeriesTarget(
        targets=columns.targets,
        known=columns.known,
        calendar=calendar,
        time=str(columns.time),
        series=columns.series,
        mean=tuple(mean.tolist()),
        scale=tuple(scale.tolist()),
        horizon=horizon,
        step_seconds=series[0].step.seconds,
        step_months=series[0].step.months,
        season=season,
        naive_error=tuple(np.where(np.isfinite(naive) & (naive > 0), naive, 1.0).tolist()),
    )


def _naive_errors(series: Sequence[NDArray[np.float64]], season: int) -> NDArray[np.float64]:
    """The mean absolute difference of values that are a season apart, of each column; NaN if there are none."""
    sums, counts = np.zeros(series[0].shape[1]), np.zeros(series[0].shape[1])
    for each in series:
        errors = np.abs(each[season:] - each[:-season])
        sums += np.nansum(errors, 0)
        counts += np.isfinite(errors).sum(0)
    return np.where(counts > 0, sums / np.maximum(1, counts), np.nan)
