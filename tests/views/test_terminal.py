"""Alignments in a terminal: blocks stand below their words, and nothing runs over the edge."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.views.terminal import BLUE, JOINERS, ORANGE, SHADES, below, clusters, matrix, shade, short, visible, width

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
    assert [shade(weight) for weight in (0, 0.03, 0.05, 0.19, 0.2, 0.5, 0.79, 0.8, 1)] == list("  ··░▒▓██")


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
    assert all(letter.isprintable() or letter in JOINERS for letter in shown)
    assert "▁" not in shown
    assert not any(unicodedata.category(character) == "Cc" for character in shown)


def test_a_matrix_by_hand() -> None:
    drawn = matrix([[1, 0, 0], [0.1, 0.5, 0.9]], ["▁the", "▁猫", "s"], ["▁la", "▁chats"])
    assert drawn == "\n".join(
        [
            "        ·the ·猫 s",
            "   ·la  ████",
            "·chats  ···· ▒▒▒ █",
        ]
    )


@given(source=pieces, target=pieces, columns=st.integers(20, 60))
def test_blocks_stand_below_their_pieces(source: list[str], target: list[str], columns: int) -> None:
    """Every piece once, in order: side by side if there is room, else upright, with its block below."""
    weights = [[1.0] * len(source) for _ in target]
    rows = [short(visible(piece), max(8, columns // 3)) for piece in target]
    at = max(map(width, rows)) + 2
    names = [visible(piece) for piece in source]
    parts = [part.split("\n") for part in matrix(weights, source, target, columns).split("\n\n")]
    if (
        len(parts) == 1
        and len(parts[0]) == 1 + len(target)
        and at + sum(max(1, width(n)) + 1 for n in names) - 1 <= columns
    ):
        header, *lines = [columns_of(line) for line in parts[0]]
        for name in names:
            room = max(1, width(name))
            assert "".join(header[at : at + room]).strip() == "".join(columns_of(name)).strip()
            assert all(line[at : at + room] == ["█"] * room for line in lines)
            at += room + 1
        return
    seen = 0
    for part in parts:
        lines = [columns_of(line) for line in part[len(part) - len(target) :]]
        count = len("".join(lines[0][at:])) // 2
        above = [columns_of(line) + [" "] * columns for line in part[: len(part) - len(target)]]
        for number in range(count):
            stack = [line[at + 2 * number] for line in above]
            letters = ["".join(columns_of(letter)) for letter in clusters(names[seen])]
            shown = letters if len(letters) <= 14 else [*letters[:13], "⋮"]
            assert "".join(stack).strip() == "".join(shown).strip()
            assert all(line[at + 2 * number : at + 2 * number + 2] == ["█", "█"] for line in lines)
            seen += 1
    assert seen == len(source)


@given(source=st.lists(st.sampled_from(["a", "ab", "猫"]), min_size=20, max_size=40), columns=st.integers(20, 60))
@example(source=["a"] * 20, columns=21)
def test_no_line_is_longer_than_the_terminal(source: list[str], columns: int) -> None:
    for line in matrix([[1.0] * len(source)] * 2, source, ["x", "yz"], columns).split("\n"):
        assert width(line) <= columns


def test_names_stand_upright_where_there_is_little_room() -> None:
    drawn = matrix([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]], ["▁cats", "▁猫", "a\u0301"], ["x", "yz"], columns=9)
    assert drawn == "\n".join(
        ["    ·", "    c", "    a", "    t ·", "    s 猫", " x  ██", "yz    ██", "", "    a\u0301", " x  ▒▒", "yz"]
    )


def test_words_without_end_are_cut() -> None:
    drawn = matrix([[1.0, 0.0]], ["a" * 10_000, "b"], ["c" * 10_000], columns=40)
    assert max(map(width, drawn.split("\n"))) <= 40
    assert len(drawn.split("\n")) < 20
    assert "⋮" in drawn
    assert "…" in drawn


def test_the_largest_of_a_row_has_a_colour_of_its_own_and_blanks_have_none() -> None:
    weights = [[0.9, 0.3, 0.0]]
    drawn = matrix(weights, ["a", "b", "d"], ["c"], coloured=True)
    assert drawn.endswith(f"{ORANGE}█\x1b[0m {BLUE}░\x1b[0m")
    plain = drawn.replace(ORANGE, "").replace(BLUE, "").replace("\x1b[0m", "")
    assert plain == matrix(weights, ["a", "b", "d"], ["c"])


@pytest.mark.parametrize("word", ["می\u200cخواهم", "क्\u200dष", "👨\u200d👩"])
def test_what_joins_letters_stays(word: str) -> None:
    assert visible(word) == word
    assert visible("\u200d") == "�"


def test_every_target_needs_its_weights() -> None:
    with pytest.raises(ValueError, match="zip"):
        matrix([[1.0]], ["a"], ["b", "c"])


def test_long_places_stand_below_what_looks_at_them() -> None:
    drawn = below([[0.25, 0.75]], ["Mary went home.", "John\x1b[31m slept."], ["home"], 60).splitlines()
    assert drawn[0] == "home"
    assert drawn[1] == "   25% ██         Mary went home."
    assert drawn[2] == "   75% ████████   John�[31m slept."
