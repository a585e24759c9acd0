"""Splitting HTML into tags and text, and joining it again, for any markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.serving.html_text import join, split

PIECES = st.sampled_from(
    ["<", ">", "<p>", "</p>", "<b>", "</b>", "<x>", "</x>", "<script>", "</script>", "&lt;", "a", " 5"]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_join_is_the_inverse_of_split_except_for_escapes(markup: str) -> None:
    segments = split(markup)
    joined = join(segments, [segment for segment, is_text in segments if is_text])
    assert split(joined) == segments


def test_special_characters_stay_escaped() -> None:
    segments = split("<p>1 &lt; 2</p><p>a &lt; b &amp; <b>c</b></p>")
    assert [segment for segment, is_text in segments if is_text] == ["a < b & <b>c</b>"]
    assert join(segments, ["A < B & <b>C</b>"]) == "<p>1 &lt; 2</p><p>A &lt; B &amp; <b>C</b></p>"


@pytest.mark.parametrize("name", ["x", "my-tag", "n:x"])
def test_text_of_ignored_tags_is_not_translated(name: str) -> None:
    markup = f"Buy <{name} id='1'>Acme Dog</{name}> now<{name}/>here"
    segments = split(markup, [name, "(", ""])
    assert [segment for segment, is_text in segments if is_text] == ["Buy ", " now", "here"]
    assert join(segments, ["Kauf ", " jetzt", "hier"]) == f"Kauf <{name} id='1'>Acme Dog</{name}> jetzt<{name}/>hier"
    assert "Acme Dog" in [segment for segment, is_text in split(markup) if is_text]
