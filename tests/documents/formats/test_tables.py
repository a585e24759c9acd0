"""TSV, CSV and JSON lines."""

import csv
import io
import json

import pytest

from tests.documents.helpers import read


def test_translations_are_added_as_a_column() -> None:
    document = read("a\tx\nb\ty\n", "tsv")
    assert document.texts == ["a", "b"]
    assert document.write(["A", None]) == b"a\tx\tA\nb\ty\t\n"
    document = read('id,source\r\n1,"one, two"\r\n2,three\r\n', "csv")
    assert document.texts == ["one, two", "three"]
    rows = list(csv.reader(io.StringIO(document.write(["eins, zwei", 'sag "drei"']).decode(), newline="")))
    assert rows == [["id", "source", "translation"], ["1", "one, two", "eins, zwei"], ["2", "three", 'sag "drei"']]
    assert read("a,b\nc,d\n", "csv", source_column=2).texts == ["b", "d"]
    assert read("name,words\nc,d\n", "csv", source_column="words").texts == ["d"]
    with pytest.raises(ValueError, match="there is no column 'word'; the first line has name, words"):
        read("name,words\nc,d\n", "csv", source_column="word")
    with pytest.raises(ValueError, match="there is no column 3; it has 2"):
        read("a,b\n", "csv", source_column=3)
    with pytest.raises(ValueError, match="this is not CSV"):
        read('a,"b\n', "csv")


def test_translations_are_added_as_a_field() -> None:
    document = read('{"id": 1, "text": "one"}\n{"id": 2}\nnonsense\n{"text": "vier", "x": [1]}\n', "jsonl")
    assert document.texts == ["one", "vier"]
    assert document.notes == ["line 3: this is not JSON"]
    written = document.write(["eins", "4"]).decode().splitlines()
    assert json.loads(written[0]) == {"id": 1, "text": "one", "translation": "eins"}
    assert json.loads(written[1]) == {"id": 2, "translation": None}
    assert written[2] == "nonsense"
    assert json.loads(written[3]) == {"text": "vier", "x": [1], "translation": "4"}
    with pytest.raises(ValueError, match="line 1: this is not JSON"):
        read("nonsense\n", "jsonl")
    with pytest.raises(ValueError, match="which field is the text"):
        read('{"a": "x", "b": "y"}\n', "jsonl")


def test_everything_else_stays_byte_for_byte() -> None:
    content = 'id,text\r\n1,"a dog"\r\n\r\n2,"two\nlines",\r\n'
    document = read(content, "csv", source_column=2)
    assert document.texts == ["a dog", "two\nlines"], "a header is known by its names"
    written = document.write(["ein Hund", "zwei\nZeilen"]).decode()
    assert written == 'id,text,translation\r\n1,"a dog",ein Hund\r\n\r\n2,"two\nlines",,"zwei\nZeilen"\r\n'
    assert (
        read("id;text\n1;a, b\n", "csv", source_column="text").write(["x;y"]) == b'id;text;translation\n1;a, b;"x;y"\n'
    )
    document = read("source\ttranslation\none\t\ntwo\tzwei\n", "tsv")
    assert document.texts == ["one"]
    assert document.write(["eins"]) == b"source\ttranslation\none\teins\ntwo\tzwei\n"
    escaped = '{"text": "caf\\u00e9"}\n{"text": "b", "translation": "OLD"}\n{}\n{"text": 5}\n'
    document = read(escaped, "jsonl")
    assert document.texts == ["café"]
    first, *rest = document.write(["Café"]).decode().splitlines()
    assert first == '{"text": "caf\\u00e9", "translation": "Café"}'
    assert rest == [
        '{"text": "b", "translation": "OLD"}',
        '{"translation": null}',
        '{"text": 5, "translation": null}',
    ]


def test_short_rows_are_padded() -> None:
    document = read("id,text,note\n4,a cat\n5,a dog,x\n", "csv", source_column="text")
    assert document.write(["A", "B"]) == b"id,text,note,translation\n4,a cat,,A\n5,a dog,x,B\n"


def test_a_field_that_is_not_a_string_is_noted() -> None:
    document = read('{"text": "a"}\n{"text": 5}\n{"text": null}\n', "jsonl")
    assert document.texts == ["a"]
    assert list(document.notes) == ["line 2: its text is no string"]
