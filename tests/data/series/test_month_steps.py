"""Steps of months: the same day of every month, or its end."""

import numpy as np
import pytest

from regard.data.series.time import Step, format_time


def dates(start: str, step: Step, count: int) -> list[str]:
    first = int(np.datetime64(start, "s").astype(np.int64))
    return [format_time(int(each), step) for each in step.after(first, count)]


@pytest.mark.parametrize(
    ("start", "months", "expected"),
    [
        ("2009-12-31", 1, ["2010-01-31", "2010-02-28", "2010-03-31", "2010-04-30"]),
        ("2012-06-30", 1, ["2012-07-31", "2012-08-31"]),
        ("2019-12-31", 3, ["2020-03-31", "2020-06-30", "2020-09-30"]),
        ("2024-02-29", 12, ["2025-02-28", "2026-02-28"]),
        ("2024-01-30", 1, ["2024-02-29", "2024-03-30"]),
        ("2024-01-15", 1, ["2024-02-15", "2024-03-15"]),
        ("2024-01-01", 1, ["2024-02-01", "2024-03-01"]),
    ],
)
def test_months_keep_their_day_or_their_end(start: str, months: int, expected: list[str]) -> None:
    assert dates(start, Step(months=months), len(expected)) == expected


def test_years_beyond_9999_are_written() -> None:
    assert dates("9999-12-31", Step(seconds=86_400), 1) == ["10000-01-01"]
