"""Which columns of a table are source and target."""

from pathlib import Path
from typing import Any

import pytest

from regard.data.example import Layout
from regard.data.task_columns import describe_columns
from tests.data.files import read, refusal, text_pairs, write

TWO = [("one", "un"), ("two", "deux")]


def test_semicolons_are_the_delimiter_where_there_is_no_comma(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'one;un\ntwo;"deux, ou; trois"\n')
    assert text_pairs(read(path)) == [("one", "un"), ("two", "deux, ou; trois")]
    assert text_pairs(read(write(tmp_path / "b.csv", "one;1,un\n"))) == [("one;1", "un")]


@pytest.mark.parametrize(
    ("first", "languages"),
    [
        ("English\tFrench", {}),
        ("id\tenglish\tfrench", {}),
        ("french\tenglish", {"source_language": "en", "target_language": "fr"}),
        ("fr\tid\ten", {"source_language": "en", "target_language": "fr"}),
        ("source\tid\ttarget", {"source_language": "en", "target_language": "fr"}),
    ],
)
def test_columns_are_found_by_language_names(first: str, languages: dict[str, str], tmp_path: Path) -> None:
    names = [name.strip().lower() for name in first.split("\t")]
    words = {"en": "one", "english": "one", "source": "one", "fr": "un", "french": "un", "target": "un", "id": "7"}
    row = "\t".join(words[name] for name in names)
    assert text_pairs(read(write(tmp_path / "a.tsv", f"{first}\n{row}\n"), **languages)) == [("one", "un")]


def test_a_missing_language_is_refused(tmp_path: Path) -> None:
    table = write(tmp_path / "a.tsv", "english\tgerman\none\teins\n")
    languages: dict[str, Any] = {"source_language": "en", "target_language": "fr"}
    assert "there is no column for fr; the first line has english, german" in refusal(table, **languages)
    lines = write(tmp_path / "a.jsonl", '{"en": "one", "de": "eins"}\n')
    assert "no field for the target; there are en, de" in refusal(lines, **languages)
    some = write(tmp_path / "b.jsonl", '{"en": "one", "fr": "un"}\n{"en": "two", "de": "zwei"}\n["three", "trois"]\n')
    found = read(some, **languages)
    assert [example.problem for example in found] == ["", "a side is missing", ""]
    assert text_pairs([found[2]]) == [("three", "trois")], "a list has no language names, only an order"


def test_a_row_with_more_columns_than_the_first_is_rejected(tmp_path: Path) -> None:
    found = read(write(tmp_path / "a.tsv", "one\tun\ntwo\tdeux\tor three\ttrois\n"))
    assert [example.problem for example in found] == ["", "4 columns, where the first line has 2"]
    three = read(write(tmp_path / "b.tsv", "one\tun\tby me\ntwo\tdeux\n"))
    assert [example.problem for example in three] == ["", ""], "fewer columns are valid if both sides are present"


def test_the_columns_that_are_read_are_described(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.tsv", "one\tun\tby me\n")
    named = write(tmp_path / "b.csv", "id,english,french\n1,one,un\n")
    assert "has 3 columns, of which the first is the source and the second the target" in describe_columns(
        plain, Layout()
    )
    assert "of which english is the source and french the target" in describe_columns(named, Layout())
    assert describe_columns(plain, Layout(source_column=1, target_column=3)) == ""
    assert describe_columns(write(tmp_path / "c.tsv", "one\tun\n"), Layout()) == ""
    assert describe_columns(write(tmp_path / "d.po", ""), Layout()) == ""
    assert describe_columns(write(tmp_path / "e.tsv", ""), Layout()) == ""


def test_commas_in_texts_do_not_prevent_semicolons_as_delimiter(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "one, or so;un\ntwo;deux\nthree, four, five;trois\n")
    assert text_pairs(read(path)) == [("one, or so", "un"), ("two", "deux"), ("three, four, five", "trois")]


def test_numeric_classes_are_read_as_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "fine", "label": 3.5}\n{"text": "bad", "label": 1}\n')
    assert text_pairs(read(path)) == [("fine", "3.5"), ("bad", "1")]
