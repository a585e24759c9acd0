"""Regular series: gaps, duplicates, order, missing values, features of the calendar."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.series.regular import calendar_features, forward_fill, regular_series, season_length
from regard.data.series.table import SeriesColumns, SeriesTable
from regard.data.series.time import Step
from regard.errors import RegardError

HOUR = 3600


def table(hours: list[float], values: list[float], names: list[str] | None = None) -> SeriesTable:
    times = (np.array(hours) * HOUR).astype(np.int64)
    return SeriesTable(Path("t.csv"), times, names, np.array(values, float)[:, None], SeriesColumns("t", None, ("a",)))


def test_missing_rows_and_values_are_filled_and_counted() -> None:
    report: Counter[str] = Counter()
    (series,) = regular_series(table([0, 1, 4, 5], [1, np.nan, 4, 5]), None, report)
    np.testing.assert_array_equal(series.values[:, 0], [1, np.nan, np.nan, np.nan, 4, 5])
    assert series.filled[:, 0].tolist() == [1, 1, 1, 1, 4, 5]
    assert (report["missing rows, filled in"], report["missing values, filled in"]) == (2, 1)
    assert series.times().tolist() == [hour * HOUR for hour in range(6)]


def test_duplicate_times_are_averaged_and_rows_are_sorted() -> None:
    report: Counter[str] = Counter()
    (series,) = regular_series(table([2, 0, 1, 1, 3], [20, 0, 10, 30, np.nan]), None, report)
    np.testing.assert_array_equal(series.values[:, 0], [0, 20, 20, np.nan])
    assert report["rows with a time that another row has, averaged"] == 1
    assert report["series whose rows were not in order of time"] == 1


def test_series_in_long_form_are_separate() -> None:
    names = list("BABA")
    first, second = regular_series(table([0, 0, 1, 1], [1, 2, 3, 4], names), None, Counter())
    assert (first.name, first.values[:, 0].tolist()) == ("B", [1, 3])
    assert (second.name, second.values[:, 0].tolist()) == ("A", [2, 4])


def test_times_between_steps_are_moved_or_refused() -> None:
    report: Counter[str] = Counter()
    (series,) = regular_series(table([0, 1, 2.2, 3, 4, 5, 6, 7], list(range(8))), None, report)
    assert series.values[:, 0].tolist() == list(range(8))
    assert report["rows moved to the nearest step"] == 1
    with pytest.raises(RegardError, match=r"t\.csv: .*resample it to regular steps first"):
        regular_series(table([0, 1, 2.5, 3.4, 4.6, 5.5, 6.5, 7.5], list(range(8))), Step(HOUR), Counter())


def test_a_few_rows_over_a_long_time_are_refused_instead_of_filling_memory() -> None:
    with pytest.raises(RegardError, match="3 rows span 1,000,000,001 steps"):
        regular_series(table([0, 1, 1e9], [1, 2, 3]), None, Counter())


@given(st.lists(st.one_of(st.none(), st.floats(-5, 5)), min_size=1, max_size=30))
def test_forward_fill_repeats_the_last_value(cells: list[float | None]) -> None:
    values = np.array([np.nan if cell is None else cell for cell in cells])[:, None]
    first = next((cell for cell in cells if cell is not None), 0.0)
    last, expected = first, []
    for cell in cells:
        last = last if cell is None else cell
        expected.append(last)
    assert forward_fill(values)[:, 0].tolist() == expected


def test_features_of_the_calendar_repeat_with_its_cycles() -> None:
    times = np.arange(0, 14 * 24) * HOUR
    names, features = calendar_features(times, Step(HOUR))
    assert names[:2] == ["hour, sine", "hour, cosine"]
    np.testing.assert_allclose(features[:24, :2], features[24:48, :2], atol=1e-9)
    np.testing.assert_allclose(features[: 7 * 24, 2:4], features[7 * 24 :, 2:4], atol=1e-9)
    assert calendar_features(times, Step(86_400))[0][0] == "weekday, sine"
    assert len(calendar_features(times, Step(months=12))[0]) == 0


@pytest.mark.parametrize(
    ("step", "season"),
    [
        *((Step(900), 96), (Step(HOUR), 24), (Step(86_400), 7)),
        *((Step(7 * 86_400), 52), (Step(months=1), 12), (Step(months=12), 1)),
    ],
)
def test_the_season_is_the_shortest_cycle(step: Step, season: int) -> None:
    assert season_length(step) == season
