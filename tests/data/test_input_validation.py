"""No example is dropped silently: rejected ones are in a file, with their line and the reason."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.example import Example
from regard.data.input_validation import RejectedExamples, read_examples, valid_examples
from regard.data.settings import DataSettings
from tests.data.files import write

SETTINGS = DataSettings()


def validate(found: list[Example], folder: Path, settings: DataSettings = SETTINGS) -> tuple[list[Example], list[dict]]:
    """The valid examples, and the records of the rejected ones."""
    with RejectedExamples(folder / "rejected.jsonl") as rejected:
        valid = list(valid_examples(iter(found), settings, rejected))
    if not (folder / "rejected.jsonl").exists():
        assert rejected.total == 0
        return valid, []
    records = [json.loads(line) for line in (folder / "rejected.jsonl").read_bytes().split(b"\n")[:-1]]
    assert len(records) == rejected.total
    for reason, count in rejected.counts.items():
        assert sum(record["reason"] == reason for record in records) == count
    return valid, records


any_text = st.text(st.sampled_from("ab \t\n\u2028\x00\x07\x85\ufffe\u3000é"), max_size=8)


@given(found=st.lists(st.builds(Example, any_text, any_text, st.just("f"), st.integers(1, 9), st.just(""))))
def test_every_example_is_valid_or_rejected(found: list[Example], tmp_path_factory) -> None:
    found = [Example(each.source, each.target, "f", line) for line, each in enumerate(found, 1)]
    valid, rejected = validate(found, tmp_path_factory.getbasetemp())
    assert sorted([example.line for example in valid] + [record["line"] for record in rejected]) == [
        example.line for example in found
    ]
    for example in valid:
        for side in (example.source, example.target):
            assert side
            assert side == side.strip(" ")
            assert not re.search(r"  |[\x00-\x1f\x7f-\x9f\u2028\ufffe]", side)


@pytest.mark.parametrize("empty", ["", " ", "\t \r\n", "\u2028", "\u00a0", "\u3000 \u3000"], ids=ascii)
def test_an_empty_side_is_rejected(empty: str, tmp_path: Path) -> None:
    found = [Example(empty, "un", "f", 1), Example("one", empty, "f", 2), Example("two", "deux", "f", 3)]
    valid, rejected = validate(found, tmp_path)
    assert [example.line for example in valid] == [3]
    assert [(record["line"], record["reason"]) for record in rejected] == [(1, "empty source"), (2, "empty target")]


@pytest.mark.parametrize("character", ["\x00", "\x08", "\x0b", "\x1b", "\x7f", "\x85", "\x9f", "\ufffe", "\uffff"])
def test_a_control_character_is_rejected(character: str, tmp_path: Path) -> None:
    found = [Example(f"o{character}ne", "un", "f", 1), Example("one", f"un{character}x", "f", 2)]
    valid, rejected = validate(found, tmp_path)
    assert valid == []
    assert [record["reason"] for record in rejected] == ["control characters"] * 2


@pytest.mark.parametrize("text", ["a\u200db", "שלום\u200f", "e\u0301", "\U0001f44d\U0001f3fd", "a\u00adb", "\u00a0x"])
def test_unusual_letters_are_valid_and_unchanged(text: str, tmp_path: Path) -> None:
    valid, _ = validate([Example(text, text, "f", 1)], tmp_path)
    assert [(example.source, example.target) for example in valid] == [(text, text)]


def test_a_lone_surrogate_is_rejected(tmp_path: Path) -> None:
    """JSON can have \\ud83d alone, which UTF-8 cannot encode."""
    found = [Example("one \ud83d", "un", "f", 1), Example("one", "un \udc4d", "f", 2), Example("two", "deux", "f", 3)]
    valid, rejected = validate(found, tmp_path)
    assert [example.line for example in valid] == [3]
    assert [record["line"] for record in rejected] == [1, 2]


def test_a_lone_surrogate_in_a_rejected_example_can_be_written(tmp_path: Path) -> None:
    _, rejected = validate([Example("one \ud83d", "", "f", 1)], tmp_path)
    assert [record["line"] for record in rejected] == [1]


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_side_with_too_many_characters_is_rejected(side: str, tmp_path: Path) -> None:
    settings = DataSettings(max_characters=10)
    records = [{"source": "one", "target": "un", side: "é" * length} for length in (10, 11)]
    found = [Example(each["source"], each["target"], "f", line) for line, each in enumerate(records, 1)]
    valid, rejected = validate(found, tmp_path, settings)
    assert [example.line for example in valid] == [1]
    assert [(record["line"], record["reason"]) for record in rejected] == [(2, "over 10 characters")]


def test_a_problem_found_by_a_reader_is_the_reason(tmp_path: Path) -> None:
    valid, rejected = validate([Example("one", "un", "some.tsv", 7, "not UTF-8")], tmp_path)
    assert valid == []
    assert rejected == [{"file": "some.tsv", "line": 7, "reason": "not UTF-8", "source": "one", "target": "un"}]


def test_without_rejected_examples_there_is_no_file(tmp_path: Path) -> None:
    assert validate([Example("one", "un", "f", 1)], tmp_path) == ([Example("one", "un", "f", 1)], [])
    assert not (tmp_path / "rejected.jsonl").exists()


def test_whitespace_is_normalized_and_case_only_if_set(tmp_path: Path) -> None:
    found = [Example("  One\t two\r\n", "Un\u2028 DEUX ", "f", 1)]
    assert validate(found, tmp_path)[0] == [Example("One two", "Un DEUX", "f", 1)]
    assert validate(found, tmp_path, DataSettings(lowercase=True))[0] == [Example("one two", "un deux", "f", 1)]


def test_files_of_all_formats_are_read_in_order(tmp_path: Path) -> None:
    settings = DataSettings(
        source=(write(tmp_path / "a.en", "one\ntwo\n"), write(tmp_path / "b.en.gz", "three\n")),
        target=(write(tmp_path / "a.fr", "un\ndeux\n"), write(tmp_path / "b.fr", "trois\n")),
        pairs=(write(tmp_path / "c.tsv", "four\tquatre\n"), write(tmp_path / "d.csv.gz", "five,cinq\n")),
        valid_pairs=(write(tmp_path / "v.jsonl", '["six", "six"]\n'),),
        valid_source=(write(tmp_path / "w.en", "seven\n"),),
        valid_target=(write(tmp_path / "w.fr", "sept\n"),),
    )
    assert [
        (example.source, example.target, Path(example.file).name, example.line) for example in read_examples(settings)
    ] == [
        ("one", "un", "a.en", 1),
        ("two", "deux", "a.en", 2),
        ("three", "trois", "b.en.gz", 1),
        ("four", "quatre", "c.tsv", 1),
        ("five", "cinq", "d.csv.gz", 1),
    ]
    assert [example.source for example in read_examples(settings, valid=True)] == ["seven", "six"]


@pytest.mark.parametrize("valid", [False, True])
def test_a_source_file_without_a_target_file_is_refused(valid: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "a.en", "one\n")
    settings = DataSettings(valid_source=(path,)) if valid else DataSettings(source=(path, path), target=(path,))
    prefix, counts = ("data.valid_", (1, 0)) if valid else ("data.", (2, 1))
    with pytest.raises(ValueError, match=rf"{prefix}source names {counts[0]} .*{prefix}target {counts[1]}"):
        list(read_examples(settings, valid=valid))
