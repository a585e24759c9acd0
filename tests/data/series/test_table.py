"""Tables of series: formats, detection of columns, missing cells, and errors."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from regard.data.series.table import SeriesColumns, is_series_table, read_series_table
from regard.errors import RegardError

ROWS = [("2024-01-01", "1.5", "10"), ("2024-01-02", "", "11"), ("2024-01-03", "NaN", "12"), ("2024-01-04", "2", "1e3")]


def table(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_delimited_tables_are_read(tmp_path: Path, delimiter: str) -> None:
    text = "\n".join(delimiter.join(row) for row in [("day", "a", "b"), *ROWS])
    found = read_series_table(table(tmp_path, text), SeriesColumns())
    assert found.columns == SeriesColumns("day", None, ("a", "b"), ())
    np.testing.assert_array_equal(found.values, [[1.5, 10], [np.nan, 11], [np.nan, 12], [2, 1000]])
    assert np.diff(found.times).tolist() == [86_400] * 3


def test_json_lines_are_read(tmp_path: Path) -> None:
    lines = [json.dumps({"a": index, "ds": f"2024-01-{index + 1:02}", "b": None}) for index in range(3)]
    lines[2] = json.dumps({"a": 2, "ds": "2024-01-03", "b": 7.5})
    found = read_series_table(table(tmp_path, "\n".join(lines), "t.jsonl"), SeriesColumns())
    np.testing.assert_array_equal(found.values, [[0, np.nan], [1, np.nan], [2, 7.5]])


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is installed")
def test_parquet_without_pyarrow_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"Parquet needs pyarrow, which is not installed: pip install pyarrow$"):
        read_series_table(table(tmp_path, "PAR1", "t.parquet"), SeriesColumns())


def test_several_series_and_columns_by_name(tmp_path: Path) -> None:
    text = "store,date,sales,price,note\n" + "".join(
        f"{store},2024-01-{day:02},{day},{day / 2},x\n" for store in "AB" for day in range(1, 5)
    )
    path = table(tmp_path, text)
    found = read_series_table(path, SeriesColumns(known=("price",)))
    assert found.columns == SeriesColumns("date", "store", ("sales",), ("price",))
    assert found.names == list("AAAABBBB")
    assert found.values[:, 1].tolist() == [0.5, 1, 1.5, 2] * 2
    assert read_series_table(path, SeriesColumns(targets=("price",))).columns.targets == ("price",)


def test_a_table_of_series_is_recognized(tmp_path: Path) -> None:
    assert is_series_table(table(tmp_path, "date,a\n2024-01-01,1\n2024-01-02,2\n"))
    assert is_series_table(table(tmp_path, "timestamp,a\n1700000000,1\n1700003600,2\n"))
    assert not is_series_table(table(tmp_path, "date,text\n2024-01-01,one\n2024-01-02,two\n"))
    assert not is_series_table(table(tmp_path, "a,b\n1,2\n3,4\n"))
    assert not is_series_table(table(tmp_path, "17. Oktober 2019\t2019-10-17\n1. Mai 2018\t2018-05-01\n", "t.tsv"))
    assert not is_series_table(tmp_path / "none.csv")
    assert not is_series_table(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "this table is empty"),
        ("date,a\n", "this table has no rows"),
        ("date\n2024-01-01\n", "this table has one column"),
        ("date,a,a\n2024-01-01,1,2\n", "two columns are called 'a'"),
        ("2024-01-01,1,2\n2024-01-02,3,4\n", "the first row is numbers"),
        ("x,a\nred,1\nblue,2\n", "no column has times"),
        ("date,a\n2024-01-01,red\n2024-01-02,blue\n", "there is no column of numbers besides date"),
        ("date,a\n2024-01-01,1\n2024-01-02,2,3\n", "row 3: it has 3 cells, the header 2"),
        ("date,a\n" + "2024-01-01,1\n" * 120 + "soon,2\n", "row 122: 'soon' is not a time"),
        ("date,a\n" + "2024-01-01,1\n" * 120 + "2024-01-01,two\n", "row 122: 'two' in the column 'a' is not a number"),
    ],
)
def test_invalid_tables_are_refused_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RegardError, match=message) as error:
        read_series_table(table(tmp_path, text), SeriesColumns())
    assert "\n" not in str(error.value)


def test_columns_that_are_named_must_be_there_and_numbers(tmp_path: Path) -> None:
    path = table(tmp_path, "date,a,note\n2024-01-01,1,x\n2024-01-02,2,y\n")
    with pytest.raises(RegardError, match="there is no column 'b'; there are date, a, note"):
        read_series_table(path, SeriesColumns(targets=("b",)))
    with pytest.raises(RegardError, match="the column 'note' is not numbers; it has 'x'"):
        read_series_table(path, SeriesColumns(known=("note",)))


def test_infinite_values_are_missing(tmp_path: Path) -> None:
    path = table(tmp_path, "date,a\n2024-01-01,inf\n2024-01-02,-inf\n2024-01-03,3\n")
    np.testing.assert_array_equal(read_series_table(path, SeriesColumns()).values[:, 0], [np.nan, np.nan, 3])
