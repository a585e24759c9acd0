"""Text files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.documents.helpers import read


@given(
    lines=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=12), max_size=8
    ),
    end=st.sampled_from(["\n", "\r\n"]),
    bom=st.booleans(),
    final_newline=st.booleans(),
    paragraphs=st.booleans(),
)
def test_writing_the_texts_back_restores_the_file(
    lines: list[str], end: str, bom: bool, final_newline: bool, paragraphs: bool
) -> None:
    content = b"\xef\xbb\xbf" * bom + (end.join(lines) + end * final_newline).encode()
    document = read(content, "text", paragraphs=paragraphs)
    assert document.write(list(document.texts)) == content
    if not paragraphs:
        assert len(document.texts) == sum(bool(line.strip()) for line in lines)


def test_white_space_around_translated_lines_is_kept() -> None:
    document = read("one\n\n  two \r\nthree", "text")
    assert document.texts == ["one", "two", "three"]
    assert document.write(["1", None, "3"]) == b"1\n\n   \r\n3"


def test_sentences_of_paragraphs_are_joined_again() -> None:
    document = read("One. Two!  Three?\nDr. Who met J. Smith on the 3. of May. 你好。再见！\n", "text", paragraphs=True)
    assert document.texts == [
        "One.",
        "Two!",
        "Three?",
        "Dr. Who met J. Smith on the 3. of May.",
        "你好。",
        "再见！",
    ]
    assert document.write(list("abcdef")) == b"a b  c\nd ef\n"


def test_a_line_that_is_not_utf8_stays_and_many_are_refused() -> None:
    document = read(b"good\nb\xe4d\ngood again\n", "text")
    assert document.texts == ["good", "b\udce4d", "good again"]
    assert document.write(["a", None, "c"]) == b"a\n\nc\n"
    with pytest.raises(ValueError, match=r"file.text, line 1: this is not UTF-8; convert the file first"):
        read("größe\nmüde".encode("latin1"), "text")
    with pytest.raises(ValueError, match="this is UTF-16"):
        read("größe".encode("utf-16"), "text")
    with pytest.raises(ValueError, match="this is gzipped"):
        read(b"\x1f\x8b\x08", "text")
