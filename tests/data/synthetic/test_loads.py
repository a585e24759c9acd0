"""Synthetic loads: one course of weather, however it is divided, with cycles of days and weeks."""

import csv
import io

import numpy as np

from regard.data.synthetic.loads import load_table


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_parts_of_a_course_are_the_whole() -> None:
    whole = load_table(200).splitlines()
    parts = [*load_table(120).splitlines(), *load_table(80, first=120).splitlines()[1:]]
    assert whole == parts
    assert load_table(20, seed=2) != load_table(20)


def test_days_and_weeks_are_cycles() -> None:
    load = np.array([float(row["load"]) for row in rows(load_table(24 * 7 * 12))])
    weeks = load.reshape(12, 7, 24)
    by_hour = weeks[:, :5].mean((0, 1))
    assert by_hour[3] < by_hour[18] - 10, "less at night than in the evening"
    assert weeks[:, 5:].mean() < weeks[:, :5].mean() - 2, "less on weekends"
    temperature = np.array([float(row["temperature"]) for row in rows(load_table(24 * 200))])
    assert temperature[24 * 150 :].mean() > temperature[: 24 * 50].mean() + 5, "warmer in June than in January"
