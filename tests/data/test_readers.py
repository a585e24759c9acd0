"""Every format is read; invalid files are refused in one sentence, invalid examples have a problem."""

import csv
import gzip
import io
import json
import os
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard import plugins
from regard.data.example import Example
from regard.data.readers import READERS, read_aligned
from regard.errors import RegardError
from tests.data.files import plain_text, read, refusal, text_pairs, write

SUFFIXES = ["tsv", "csv", "jsonl", "po", "tmx", "xlf"]
TWO = [("one", "un"), ("two", "deux")]
FILE_CONTENTS = {
    "tsv": "one\tun\ntwo\tdeux\n",
    "tab": "one\tun\ntwo\tdeux\n",
    "csv": "one,un\ntwo,deux\n",
    "jsonl": '{"source": "one", "target": "un"}\n{"source": "two", "target": "deux"}\n',
    "ndjson": '["one", "un"]\n["two", "deux"]\n',
    "po": 'msgid "one"\nmsgstr "un"\n\nmsgid "two"\nmsgstr "deux"\n',
    "tmx": "<tmx version='1.4'><header srclang='en'/><body>"
    "<tu><tuv xml:lang='en'><seg>one</seg></tuv><tuv xml:lang='fr'><seg>un</seg></tuv></tu>"
    "<tu><tuv xml:lang='en'><seg>two</seg></tuv><tuv xml:lang='fr'><seg>deux</seg></tuv></tu></body></tmx>",
    "xlf": "<xliff version='1.2'><file><body>"
    "<trans-unit><source>one</source><target>un</target></trans-unit>"
    "<trans-unit><source>two</source><target>deux</target></trans-unit></body></file></xliff>",
}
DAMAGED = "the gzip file is damaged or cut short; copy it again."
LINES = ["tsv", "tab", "csv", "jsonl", "ndjson"]


# Valid files


@pytest.mark.parametrize("extension", ["", ".gz"])
@pytest.mark.parametrize("suffix", FILE_CONTENTS)
def test_every_format_is_read_gzipped_or_not(suffix: str, extension: str, tmp_path: Path) -> None:
    assert text_pairs(read(write(tmp_path / f"pairs.{suffix}{extension}", FILE_CONTENTS[suffix]))) == TWO


@pytest.mark.parametrize("extension", ["", ".gz"])
def test_two_text_files_are_read_line_by_line(extension: str, tmp_path: Path) -> None:
    source = write(tmp_path / f"a.en{extension}", "one\ntwo\n")
    target = write(tmp_path / f"a.fr{extension}", "un\ndeux")  # a last line without an end is a line
    assert list(read_aligned(source, target)) == [
        Example("one", "un", str(source), 1),
        Example("two", "deux", str(source), 2),
    ]


@pytest.mark.parametrize("suffix", FILE_CONTENTS)
def test_a_byte_order_mark_and_windows_line_ends_are_not_part_of_the_text(suffix: str, tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + FILE_CONTENTS[suffix].replace("\n", "\r\n").encode()
    assert text_pairs(read(write(tmp_path / f"pairs.{suffix}", content))) == TWO


def test_a_byte_order_mark_and_windows_line_ends_in_text_files(tmp_path: Path) -> None:
    source = write(tmp_path / "a.en", b"\xef\xbb\xbfone\r\ntwo\r\n")
    target = write(tmp_path / "a.fr", b"\xef\xbb\xbfun\r\ndeux\r\n")
    assert text_pairs(list(read_aligned(source, target))) == TWO


@pytest.mark.parametrize("suffix", LINES)
def test_an_empty_file_has_no_examples(suffix: str, tmp_path: Path) -> None:
    assert read(write(tmp_path / f"pairs.{suffix}", "")) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_file_suffixes_are_case_insensitive(suffix: str, tmp_path: Path) -> None:
    assert text_pairs(read(write(tmp_path / f"PAIRS.{suffix.upper()}", FILE_CONTENTS[suffix]))) == TWO


@given(pairs=st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), max_size=5))
def test_csv_round_trip(pairs: list[tuple[str, str]], tmp_path_factory) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("source", "target"), *pairs])
    path = write(tmp_path_factory.getbasetemp() / "written.csv", text.getvalue())
    assert text_pairs(read(path)) == [tuple(re.sub(r"\r+\n", "\n", side) for side in pair) for pair in pairs]


@given(pairs=st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), max_size=5), escaped=st.booleans())
def test_json_round_trip(pairs: list[tuple[str, str]], escaped: bool, tmp_path_factory) -> None:
    lines = [json.dumps({"source": s, "target": t}, ensure_ascii=escaped) + "\n" for s, t in pairs]
    assert text_pairs(read(write(tmp_path_factory.getbasetemp() / "written.jsonl", "".join(lines)))) == pairs


@given(pairs=st.lists(st.tuples(plain_text, plain_text), max_size=5))
def test_tsv_has_no_quoting(pairs: list[tuple[str, str]], tmp_path_factory) -> None:
    pairs = [(f'"{source}', f'{target}"') for source, target in pairs]
    content = "".join(f"{source}\t{target}\n" for source, target in pairs)
    assert text_pairs(read(write(tmp_path_factory.getbasetemp() / "written.tsv", content))) == pairs


def test_csv_fields_may_have_commas_quotes_and_newlines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'one,un\n"two, ""2""\r\nand more",deux\nthree,trois\n')
    assert [(example.source, example.target, example.line) for example in read(path)] == [
        ("one", "un", 1),
        ('two, "2"\nand more', "deux", 2),
        ("three", "trois", 4),
    ]


@pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ","), ("tsv", "\t")])
@pytest.mark.parametrize(
    ("header", "columns"),
    [
        (["source", "target"], (0, 1)),
        (["Target", " Source "], (1, 0)),
        (["id", "src", "tgt"], (1, 2)),
        (["answer", "id", "question"], (2, 0)),
        (["input", "output", "note"], (0, 1)),
    ],
)
def test_a_header_with_known_names_selects_the_columns(
    header: list[str], columns: tuple[int, int], suffix: str, delimiter: str, tmp_path: Path
) -> None:
    row = [f"field {column}" for column in range(len(header))]
    path = write(tmp_path / f"a.{suffix}", f"{delimiter.join(header)}\n{delimiter.join(row)}\n")
    assert text_pairs(read(path)) == [(row[columns[0]], row[columns[1]])]
    assert read(path)[0].line == 2


@pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_columns_by_number_and_by_name(suffix: str, delimiter: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"a.{suffix}", f"nr{delimiter}fr{delimiter}en\n1{delimiter}un{delimiter}one\n")
    assert text_pairs(read(path, source_column="en", target_column="fr")) == [("one", "un")]
    assert text_pairs(read(path, source_column="en", target_column=1)) == [("one", "1")]
    numbers = text_pairs(read(path, source_column=3, target_column=2))
    assert numbers == [("en", "fr"), ("one", "un")]  # the first line is not recognized as a header
    known = write(tmp_path / f"b.{suffix}", f"source{delimiter}target\none{delimiter}un\n")
    assert text_pairs(read(known, source_column=2, target_column=1)) == [("un", "one")]


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", "fr,en\nun,one\n"), ("a.tsv", "fr\ten\nun\tone\n"), ("a.jsonl", '{"fr": "un", "en": "one"}\n')],
)
def test_one_column_by_name_leaves_the_remaining_one_for_the_other_side(
    name: str, content: str, tmp_path: Path
) -> None:
    path = write(tmp_path / name, content)
    assert text_pairs(read(path, source_column="en")) == [("one", "un")]
    assert text_pairs(read(path, target_column="fr")) == [("one", "un")]


def test_one_column_by_number_leaves_the_remaining_one_for_the_other_side(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "un\tone\n")
    assert text_pairs(read(path, source_column=2)) == [("one", "un")]
    assert text_pairs(read(path, target_column=1)) == [("one", "un")]


@pytest.mark.parametrize(
    ("record", "layout"),
    [
        ({"source": "one", "target": "un"}, {}),
        ({"target": "un", "source": "one", "id": 7}, {}),
        ({"question": "one", "answer": "un"}, {}),
        ({"input": "one", "output": "un", "id": None}, {}),
        ({"first": "one", "second": "un"}, {}),
        ({"en": "one", "translation": "un"}, {}),
        (["one", "un"], {}),
        (["7", "one", "un"], {"source_column": 2, "target_column": 3}),
        ({"translation": {"en": "one", "fr": "un"}}, {}),
        ({"id": "7", "translation": {"fr": "un", "en": "one"}}, {"source_language": "en", "target_language": "fr"}),
        ({"fr": "un", "en": "one", "de": "eins"}, {"source_language": "en", "target_language": "fr"}),
        ({"a": "x", "b": "one", "c": "un"}, {"source_column": "b", "target_column": "c"}),
        ({"translation": {"fr": "un", "en": "one"}}, {}),
        ({"fr": "un", "en": "one"}, {"source_language": "en"}),
        ({"fr": "un", "en": "one"}, {"target_language": "fr"}),
        ({"fr": "un", "source": "one"}, {}),
        ({"target": "un", "en-GB": "one"}, {}),
    ],
    ids=str,
)
def test_json_fields_are_found_by_name_language_or_position(
    record: object, layout: dict[str, str | int], tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", json.dumps(record) + "\n")
    assert text_pairs(read(path, **layout)) == [("one", "un")]  # type: ignore[arg-type]


# Invalid files


@pytest.mark.parametrize("extension", ["", ".gz"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_file_is_refused(suffix: str, extension: str, tmp_path: Path) -> None:
    assert "there is no such file" in refusal(tmp_path / f"none.{suffix}{extension}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_folder_is_refused(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"a.{suffix}").mkdir()
    assert "this is a folder" in refusal(tmp_path / f"a.{suffix}")


def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    refusal(write(tmp_path / "a.tsv", "one\tun\n") / "b.tsv")


def test_missing_text_files_and_folders_are_refused(tmp_path: Path) -> None:
    existing = write(tmp_path / "a.en", "one\n")
    assert "there is no such file" in refusal(tmp_path / "a.fr", existing)
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path / 'a.fr'}: there is no such file.")):
        list(read_aligned(existing, tmp_path / "a.fr"))
    assert "this is a folder" in refusal(tmp_path, existing)


@pytest.mark.parametrize("suffix", ["txt", "docx", "parquet", ""])
def test_an_unknown_format_is_refused_with_the_known_ones(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not known") as error:
        read(write(tmp_path / f"a.{suffix}", "one\tun\n"))
    assert str(tmp_path) in str(error.value)
    assert all(f".{known}" in str(error.value) for known in SUFFIXES)


@pytest.mark.parametrize(("extension", "encoding"), [("", "utf-16-le"), ("", "utf-16-be"), (".gz", "utf-16-le")])
@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl", "po"])
def test_utf16_is_refused(suffix: str, extension: str, encoding: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"a.{suffix}{extension}", ("\ufeff" + FILE_CONTENTS[suffix]).encode(encoding))
    assert "UTF-16" in refusal(path)


def test_utf16_in_text_files_is_refused(tmp_path: Path) -> None:
    wide, narrow = write(tmp_path / "a.en", "one\n".encode("utf-16")), write(tmp_path / "a.fr", "un\n")
    assert "UTF-16" in refusal(wide, narrow)


LATIN = {
    "tsv": "née\tné\n",
    "csv": "née,né\n",
    "jsonl": '{"source": "née", "target": "né"}\n',
    "po": 'msgid "née"\nmsgstr "né"\n\n',
}


@pytest.mark.parametrize("lines", [1, 2, 1000])
@pytest.mark.parametrize("suffix", LATIN)
def test_a_file_in_latin1_is_refused(suffix: str, lines: int, tmp_path: Path) -> None:
    assert "not UTF-8" in refusal(write(tmp_path / f"a.{suffix}", (LATIN[suffix] * lines).encode("latin-1")))


def test_a_latin1_target_among_text_files_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "a.en", "born\n" * 100)
    target = write(tmp_path / "a.fr", ("né\n" * 100).encode("latin-1"))
    with pytest.raises(ValueError, match=re.escape(f"{target}, line 1: this is not UTF-8")):
        list(read_aligned(source, target))


@pytest.mark.parametrize(("first", "second"), [(3, 5), (5, 3), (0, 1), (1, 0)])
def test_different_numbers_of_lines_are_refused_naming_both(first: int, second: int, tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.en", "one\n" * first), write(tmp_path / "a.fr", "un\n" * second)
    message = refusal(source, target)
    longer = source if first > second else target
    assert f"{source.name} has {first} lines and {target.name} {second}:" in message
    assert f"line {min(first, second) + 1} of {longer.name} has no partner" in message


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_truncated_gzip_file_is_refused(suffix: str, tmp_path: Path) -> None:
    whole = gzip.compress(FILE_CONTENTS[suffix].encode())
    for length in (len(whole) - 4, len(whole) // 2, 5):
        (tmp_path / f"a.{suffix}.gz").write_bytes(whole[:length])
        assert refusal(tmp_path / f"a.{suffix}.gz") == f"a.{suffix}.gz: {DAMAGED}"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_long_truncated_gzip_file_is_refused(suffix: str, tmp_path: Path) -> None:
    rng = random.Random(0)
    start, middle, end = (part.encode() for part in FILE_CONTENTS[suffix].partition("two"))
    content = start + middle + b"".join(b" %x" % rng.getrandbits(64) for _ in range(9000)) + end
    for times in (1, 8) if suffix in ("tsv", "csv", "jsonl") else (1,):
        whole = gzip.compress(content * times)
        (tmp_path / f"a.{suffix}.gz").write_bytes(whole[: len(whole) * 2 // 3])
        assert refusal(tmp_path / f"a.{suffix}.gz") == f"a.{suffix}.gz: {DAMAGED}"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_damaged_gzip_file_is_refused(suffix: str, tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(FILE_CONTENTS[suffix].encode()))
    whole[-6] ^= 0xFF  # the checksum
    (tmp_path / f"a.{suffix}.gz").write_bytes(whole)
    assert refusal(tmp_path / f"a.{suffix}.gz") == f"a.{suffix}.gz: {DAMAGED}"
    (tmp_path / f"b.{suffix}.gz").write_text(FILE_CONTENTS[suffix])
    assert refusal(tmp_path / f"b.{suffix}.gz") == f"b.{suffix}.gz: {DAMAGED}"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_gzipped_file_without_gz_suffix_is_refused(suffix: str, tmp_path: Path) -> None:
    assert "gzipped" in refusal(write(tmp_path / f"a.{suffix}", gzip.compress(FILE_CONTENTS[suffix].encode())))


@pytest.mark.parametrize(("suffix", "separators"), [("tsv", "tabs"), ("csv", "commas or semicolons")])
def test_a_table_without_its_delimiter_is_refused(suffix: str, separators: str, tmp_path: Path) -> None:
    assert f"separated by {separators}?" in refusal(write(tmp_path / f"a.{suffix}", "one un\ntwo deux\n"))


def test_a_missing_column_is_refused_with_the_existing_ones(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "en,fr\none,un\n")
    assert "no column 'de'; the first line has en, fr" in refusal(path, target_column="de")
    assert "no column 3; it has 2" in refusal(path, target_column=3)
    assert "no column 0" in refusal(path, source_column=0)


def test_a_jsonl_file_that_is_not_json_is_refused(tmp_path: Path) -> None:
    assert "not JSON" in refusal(write(tmp_path / "a.jsonl", "one\tun\n"))


def test_json_without_a_known_field_is_refused_with_its_fields(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"id": "1", "words": "one", "mots": "un"}\n')
    assert "id, words, mots" in refusal(path)
    assert "no field for the target" in refusal(path, source_column="words")


# Invalid examples


@pytest.mark.parametrize(
    ("suffix", "line"), [("tsv", b"caf\xe9\tun\n"), ("csv", b"caf\xe9,un\n"), ("jsonl", b'["caf\xe9", "un"]\n')]
)
@pytest.mark.parametrize("row", [0, 1, 2])
def test_a_line_that_is_not_utf8_is_rejected(suffix: str, line: bytes, row: int, tmp_path: Path) -> None:
    lines = FILE_CONTENTS[suffix].encode().splitlines(keepends=True)
    lines.insert(row, line)
    examples = read(write(tmp_path / f"a.{suffix}", b"".join(lines)))
    assert [example.problem for example in examples] == ["not UTF-8" if at == row else "" for at in range(3)]
    assert examples[row].line == row + 1
    assert examples[row].source == "caf\ufffd"


@pytest.mark.parametrize("side", [0, 1])
def test_a_line_of_a_text_file_that_is_not_utf8_is_rejected_with_its_partner(side: int, tmp_path: Path) -> None:
    contents = [b"one\ntwo\nthree\n", b"un\ndeux\ntrois\n"]
    contents[side] = contents[side].replace(b"t", b"\xff", 1)
    source, target = (write(tmp_path / name, content) for name, content in zip("ab", contents, strict=True))
    problems = [example.problem for example in read_aligned(source, target)]
    assert sorted(problems) == ["", "", "not UTF-8"]


def test_a_few_invalid_lines_are_rejected_and_many_refuse_the_file(tmp_path: Path) -> None:
    """One invalid line in twenty is damage; one in three is another encoding, in a language with few accents."""
    for every, refuses_file in ((20, False), (3, True)):
        lines = [b"n\xe9\tborn\n" if number % every == 1 else b"un\tone\n" for number in range(1000)]
        path = write(tmp_path / "a.tsv", b"".join(lines))
        if refuses_file:
            assert "many other lines" in refusal(path)
        else:
            assert sum(example.problem == "not UTF-8" for example in read(path)) == 50


def test_an_invalid_line_in_a_multiline_csv_field_is_detected(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", b'one,un\ntwo,"deux\ncaf\xe9\nfin"\nthree,trois\nfour,quatre\n')
    assert [(example.line, example.problem) for example in read(path)] == [(1, ""), (2, "not UTF-8"), (5, ""), (6, "")]


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
@pytest.mark.parametrize("row", [0, 1, 2])
def test_empty_lines_of_a_table_are_skipped(suffix: str, row: int, tmp_path: Path) -> None:
    lines = FILE_CONTENTS[suffix].splitlines(keepends=True)
    lines.insert(row, "\n")
    assert text_pairs(read(write(tmp_path / f"a.{suffix}", "".join(lines)))) == [("one", "un"), ("two", "deux")]


def test_an_unclosed_quotation_mark_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "one,un\n" * 5 + '"two,deux\n' + "one,un\n" * 5)
    assert "line 6: this is not CSV: a quotation mark is opened and never closed" in refusal(path)


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.tsv")
    assert "save it as a file first" in refusal(tmp_path / "a.tsv")


@pytest.mark.parametrize("row", [1, 2, 3])
@pytest.mark.parametrize(("suffix", "line"), [("tsv", "alone\n"), ("csv", "alone\n")])
def test_a_row_with_too_few_columns_is_rejected(suffix: str, line: str, row: int, tmp_path: Path) -> None:
    lines = (FILE_CONTENTS[suffix] * 2).splitlines(keepends=True)
    lines.insert(row, line)
    examples = read(write(tmp_path / f"a.{suffix}", "".join(lines)))
    assert len(examples) == 5
    assert [bool(example.problem) for example in examples] == [at == row for at in range(5)]


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        '{"source": "one"}',
        '{"source": "one", "target": 3}',
        '{"source": "one", "target": null}',
        "[]",
        "3",
        "[" * 100_000,
        '{"source": ' + "1" * 5000 + ', "target": "un"}',
    ],
    ids=lambda line: line[:32],
)
def test_a_json_line_that_is_not_a_pair_is_rejected(line: str, tmp_path: Path) -> None:
    content = FILE_CONTENTS["jsonl"] + line + "\n" + FILE_CONTENTS["jsonl"]
    examples = read(write(tmp_path / "a.jsonl", content))
    assert [bool(example.problem) for example in examples] == [False, False, True, False, False]
    assert examples[2].line == 3


# Plugins and documentation

PLUGIN = """
from regard.data.example import Example
from regard.data.input_files import read_lines
from regard.data.readers import READERS, Reader


@READERS.register("arrows")
class ArrowsReader(Reader):
    suffixes = (".arrows",)

    def read(self, path, layout):
        for number, (line, problem) in enumerate(read_lines(path), 1):
            source, _, target = line.partition(" -> ")
            yield Example(source, target, str(path), number, problem)
"""


def test_a_reader_plugin_is_used_and_listed(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="is not known"):
        read(write(tmp_path / "a.arrows", "one -> un\n"))
    plugins.load_file(write(tmp_path / "arrows.py", PLUGIN))
    try:
        assert text_pairs(read(write(tmp_path / "a.arrows.gz", "one -> un\ntwo -> deux\n"))) == TWO
        assert ".arrows" in refusal(write(tmp_path / "a.parquet", ""))
    finally:
        READERS._entries.pop("arrows")


@pytest.mark.parametrize("name", READERS.builtin_names())
def test_every_format_is_documented(name: str) -> None:
    docs = "\n".join(path.read_text() for path in (Path(__file__).parents[2] / "docs").glob("*.md"))
    known = [name, *READERS.get(name).suffixes]
    assert any(f"`{each}`" in docs for each in known), f"mention one of {', '.join(known)} in docs/"
