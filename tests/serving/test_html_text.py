"""Text is found between tags, whatever the markup, and put back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.serving.html_text import join, split

PIECES = st.sampled_from(
    ["<", ">", "<p>", "</p>", "<b>", "</b>", "<x>", "</x>", "<script>", "</script>", "&lt;", "a", " 5"]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_putting_back_what_was_there_changes_nothing_but_escapes(markup: str) -> None:
    parts = split(markup)
    again = join(parts, [part for part, is_text in parts if is_text])
    assert split(again) == parts


def test_signs_stay_escaped() -> None:
    parts = split("<p>1 &lt; 2</p><p>a &lt; b &amp; <b>c</b></p>")
    assert [part for part, is_text in parts if is_text] == ["a < b & <b>c</b>"]
    assert join(parts, ["A < B & <b>C</b>"]) == "<p>1 &lt; 2</p><p>A &lt; B &amp; <b>C</b></p>"


@pytest.mark.parametrize("name", ["x", "my-tag", "n:x"])
def test_ignored_tags_keep_their_text(name: str) -> None:
    markup = f"Buy <{name} id='1'>Acme Dog</{name}> now<{name}/>here"
    parts = split(markup, [name, "(", ""])
    assert [part for part, is_text in parts if is_text] == ["Buy ", " now", "here"]
    assert join(parts, ["Kauf ", " jetzt", "hier"]) == f"Kauf <{name} id='1'>Acme Dog</{name}> jetzt<{name}/>hier"
    assert "Acme Dog" in [part for part, is_text in split(markup) if is_text]
