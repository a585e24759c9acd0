"""Times in any usual format, and the step of a series."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.series.time import Step, format_time, infer_step, parse_times, time_format
from regard.errors import RegardError

MOMENT = int(datetime(2024, 5, 31, 18, 30, tzinfo=UTC).timestamp())
DAY = int(datetime(2024, 5, 31, tzinfo=UTC).timestamp())
MONTH = int(datetime(2024, 5, 1, tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("2024-05-31 18:30:00", MOMENT),
        ("2024-05-31T18:30", MOMENT),
        ("2024-05-31T20:30:00+02:00", MOMENT),
        ("2024-05-31T18:30:00Z", MOMENT),
        ("2024-05-31", DAY),
        ("20240531", DAY),
        ("31.05.2024", DAY),
        ("31.05.2024 18:30", MOMENT),
        ("05/31/2024", DAY),
        ("31/05/2024", DAY),
        ("2024/05/31 18:30", MOMENT),
        ("5/31/2024 6:30 PM", MOMENT),
        ("31-May-2024", DAY),
        ("May 31, 2024", DAY),
        ("2024年05月31日", DAY),
        ("2024-05", MONTH),
        ("May 2024", MONTH),
        ("2024Q2", int(datetime(2024, 4, 1, tzinfo=UTC).timestamp())),
        ("2024-W22", int(datetime(2024, 5, 27, tzinfo=UTC).timestamp())),
        (str(MOMENT), MOMENT),
        (MOMENT * 1000, MOMENT),
        (float(MOMENT), MOMENT),
        ("2024", int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())),
        (datetime(2024, 5, 31, 18, 30), MOMENT),
    ],
)
def test_usual_formats_are_read(cell: object, expected: int) -> None:
    name = time_format([cell])
    assert name is not None
    assert parse_times([cell], name, Path("x.csv"), 1).tolist() == [expected]


@pytest.mark.parametrize("cells", [["red"], ["1.5"], ["12"], [""], [None], ["2024-13-01"], ["99999999"]])
def test_other_cells_are_no_times(cells: list[object]) -> None:
    assert time_format(cells) is None


def test_days_and_months_are_told_apart_by_the_whole_column() -> None:
    assert time_format(["05/06/2024", "13/06/2024"]) == "%d/%m/%Y"
    assert time_format(["05/06/2024", "06/13/2024"]) == "%m/%d/%Y"


def test_an_invalid_time_is_refused_with_its_row() -> None:
    with pytest.raises(RegardError, match=r"x\.csv, row 8: 'soon' is not a time like those above it"):
        parse_times(["2024-01-01", "soon"], "iso", Path("x.csv"), 7)


@pytest.mark.parametrize(
    ("unit", "count", "expected"),
    [("h", 1, "1 hour"), ("m", 15, "15 minutes"), ("D", 1, "1 day"), ("D", 7, "1 week"), ("s", 10, "10 seconds")],
)
def test_the_step_is_the_most_common_difference(unit: str, count: int, expected: str) -> None:
    times = np.arange(0, 40 * count, count).astype(f"datetime64[{unit}]").astype("datetime64[s]").astype(np.int64)
    step = infer_step(np.delete(times, [5, 6, 20]))
    assert str(step) == expected
    assert step.index(times, int(times[0])).tolist() == list(range(40))
    assert step.after(int(times[3]), 4).tolist() == times[4:8].tolist()


@pytest.mark.parametrize(("months", "name"), [(1, "1 month"), (3, "1 quarter"), (12, "1 year")])
def test_months_follow_the_calendar(months: int, name: str) -> None:
    dates = (np.datetime64("1999-01", "M") + np.arange(0, 20 * months, months)).astype("datetime64[s]")
    times = dates.astype(np.int64)
    step = infer_step(times)
    assert str(step) == name
    assert step.after(int(times[0]), 19).tolist() == times[1:].tolist()
    assert step.index(times, int(times[0])).tolist() == list(range(20))


@given(st.integers(-(2**31), 2**33), st.integers(1, 10**6), st.integers(1, 50))
def test_steps_after_a_time_have_consecutive_indices(start: int, seconds: int, count: int) -> None:
    step = Step(seconds=seconds)
    assert step.index(step.after(start, count), start).tolist() == list(range(1, count + 1))


def test_times_are_written_as_dates_where_steps_are_days() -> None:
    assert format_time(DAY, Step(seconds=86_400)) == "2024-05-31"
    assert format_time(MOMENT, Step(seconds=3600)) == "2024-05-31 18:30:00"
    assert format_time(MONTH, Step(months=1)) == "2024-05-01"


@pytest.mark.parametrize("cell", ["inf", "-inf", "nan", "1e300", "Infinity"])
def test_numbers_that_are_no_times_are_none(cell: str) -> None:
    """Infinity once was divided by a thousand for ever."""
    assert time_format([cell]) is None
