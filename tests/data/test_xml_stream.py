"""XML translation files: any text is read; hostile and malformed files are refused."""

import re
import tracemalloc
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given

from regard.data.example import Layout
from regard.data.readers import read_pairs
from tests.data.files import plain_text, read, refusal, text_pairs, write
from tests.data.formats.translation_files import (
    BOMB,
    FORMATS,
    OUTSIDE,
    xml_file,
)


@pytest.mark.parametrize("format_name", FORMATS)
@given(source=plain_text, target=plain_text.filter(str.strip))
def test_any_text_is_read_back(format_name: str, source: str, target: str, tmp_path_factory) -> None:
    path = write(
        tmp_path_factory.getbasetemp() / f"any.{format_name}", xml_file(format_name, escape(source), escape(target))
    )
    assert text_pairs(read(path)) == [(source, target)]


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("before", [BOMB, OUTSIDE], ids=["bomb", "outside"])
def test_entities_are_refused(before: str, format_name: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"a.{format_name}", xml_file(format_name, "&c;", "un", before))
    assert "entities" in refusal(path)


@pytest.mark.parametrize("format_name", FORMATS)
def test_malformed_xml_is_refused(format_name: str, tmp_path: Path) -> None:
    whole = xml_file(format_name, "one", "un")
    for broken in ("", "hello", whole[:-10], whole[: len(whole) // 2], whole.replace("</", "<", 1), whole + "<"):
        assert "not well-formed XML" in refusal(write(tmp_path / f"a.{format_name}", broken))


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("encoding", ["nonsense", "gb2312"])
def test_an_unreadable_encoding_is_refused(encoding: str, format_name: str, tmp_path: Path) -> None:
    content = xml_file(format_name, "one", "un").replace('"1.0"', f'"1.0" encoding="{encoding}"', 1)
    refusal(write(tmp_path / f"a.{format_name}", content))


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_declared_encoding_is_read(format_name: str, tmp_path: Path) -> None:
    content = xml_file(format_name, "née", "né").replace('"1.0"', '"1.0" encoding="iso-8859-1"', 1)
    assert text_pairs(read(write(tmp_path / f"a.{format_name}", content.encode("latin-1")))) == [("née", "né")]


@pytest.mark.parametrize("format_name", FORMATS)
def test_deep_markup_is_read_or_refused(format_name: str, tmp_path: Path) -> None:
    deep = "<hi>" * 5000 + "one" + "</hi>" * 5000
    path = write(tmp_path / f"a.{format_name}", xml_file(format_name, deep, "un"))
    try:
        assert text_pairs(read(path)) == [("one", "un")]
    except ValueError:
        refusal(path)


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_large_file_is_streamed(format_name: str, tmp_path: Path) -> None:
    one = xml_file(format_name, "one " * 250, "un " * 250)
    start, end = re.search(r"<(tu|trans-unit|segment)\b.*</\1>", one).span()
    path = write(tmp_path / f"a.{format_name}", one[:start] + one[start:end] * 2000 + one[end:])
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_pairs(path, Layout()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 2000
    assert peak < path.stat().st_size / 3
