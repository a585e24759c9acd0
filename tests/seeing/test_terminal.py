"""Alignments in a terminal: blocks stand below their words, and nothing runs over the edge."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.seeing.terminal import SHADES, matrix, shade, visible, width

ODD = ["▁", "猫", "e\u0301", "\u0301", "\u0902", "\u200d", "\x1b", "\n", "ﷺ", "한", "…", "", "ab", "\t"]
pieces = st.lists(st.sampled_from(ODD) | st.text("abc▁猫\u0301", max_size=5), min_size=1, max_size=12)


def columns_of(line: str) -> list[str]:
    """What each column of the terminal shows; marks that take no column are left out."""
    shown: list[str] = []
    for character in line:
        shown += [character, ""][: width(character)]
    return shown


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_weight_is_darker(a: float, b: float) -> None:
    assert shade(a) in SHADES
    if a <= b:
        assert SHADES.index(shade(a)) <= SHADES.index(shade(b))


def test_shades_by_hand() -> None:
    assert [shade(weight) for weight in (0, 0.19, 0.2, 0.5, 0.79, 0.8, 1)] == [" ", " ", "░", "▒", "▓", "█", "█"]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("abc", 3),
        ("猫", 2),
        ("한국", 4),
        ("Ａ", 2),
        ("e\u0301", 1),
        ("a\u200db", 2),
        ("█", 1),
        ("ﾈｺ", 2),
    ],
)
def test_width_by_hand(text: str, columns: int) -> None:
    assert width(text) == columns


@given(st.text(max_size=12))
def test_nothing_visible_disturbs_a_terminal(text: str) -> None:
    shown = visible(text)
    assert len(shown) == len(text)
    assert shown.isprintable()
    assert "▁" not in shown
    assert not any(unicodedata.category(character) == "Cc" for character in shown)


def test_a_matrix_by_hand() -> None:
    drawn = matrix([[1, 0, 0], [0.1, 0.5, 0.9]], ["▁the", "▁猫", "s"], ["▁la", "▁chats"])
    assert drawn == "\n".join(
        [
            "        ·the ·猫 s",
            "   ·la  ████",
            "·chats       ▒▒▒ █",
        ]
    )


@given(source=pieces, target=pieces, columns=st.integers(20, 60))
def test_blocks_stand_below_their_pieces(source: list[str], target: list[str], columns: int) -> None:
    weights = [[1.0] * len(source) for _ in target]
    header, *rows = [columns_of(line) for line in matrix(weights, source, target, columns).split("\n")]
    assert len(rows) == len(target)
    at = max(width(visible(piece)) for piece in target) + 2
    shown = len("".join(rows[0][at:]).split())
    assert shown
    for piece in source[:shown]:
        room = max(1, width(visible(piece)))
        assert "".join(header[at : at + room]).strip() == "".join(columns_of(visible(piece))).strip()
        assert all(row[at : at + room] == ["█"] * room for row in rows)
        at += room + 1
    assert "".join(header[at:]).strip() == ("…" if shown < len(source) else "")
    assert all(len(row) == at - 1 for row in rows)


@given(source=st.lists(st.sampled_from(["a", "ab", "猫"]), min_size=20, max_size=40), columns=st.integers(20, 60))
@example(source=["a"] * 20, columns=21)
def test_no_line_is_longer_than_the_terminal(source: list[str], columns: int) -> None:
    for line in matrix([[1.0] * len(source)] * 2, source, ["x", "yz"], columns).split("\n"):
        assert width(line) <= columns


def test_sources_that_do_not_fit_are_left_out_and_said_so() -> None:
    drawn = matrix([[1.0] * 30], ["word"] * 30, ["x"], columns=40).split("\n")
    assert drawn[0].endswith(" …")
    assert drawn[0].count("word") == drawn[1].count("████") >= 6
    assert "…" not in matrix([[1.0] * 3], ["word"] * 3, ["x"], columns=40)


def test_every_target_needs_its_weights() -> None:
    with pytest.raises(ValueError, match="zip"):
        matrix([[1.0]], ["a"], ["b", "c"])
