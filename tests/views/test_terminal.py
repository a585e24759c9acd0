"""Alignments in the terminal: blocks are below their labels, and no line is too long."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.views.terminal import (
    BLUE,
    JOINERS,
    ORANGE,
    SHADES,
    grapheme_clusters,
    printable,
    render_list,
    render_matrix,
    shade_block,
    text_width,
    truncate,
)

UNUSUAL = ["▁", "猫", "e\u0301", "\u0301", "\u0902", "\u200d", "\x1b", "\n", "ﷺ", "한", "…", "", "ab", "\t"]
tokens = st.lists(st.sampled_from(UNUSUAL) | st.text("abc▁猫\u0301", max_size=5), min_size=1, max_size=12)


def terminal_columns(line: str) -> list[str]:
    """The character in each column of the terminal; combining marks are left out."""
    printed: list[str] = []
    for character in line:
        printed += [character, ""][: text_width(character)]
    return printed


@given(st.floats(0, 1), st.floats(0, 1))
def test_larger_weights_are_darker(a: float, b: float) -> None:
    assert shade_block(a) in SHADES
    if a <= b:
        assert SHADES.index(shade_block(a)) <= SHADES.index(shade_block(b))


def test_shades_by_hand() -> None:
    assert [shade_block(weight) for weight in (0, 0.03, 0.05, 0.19, 0.2, 0.5, 0.79, 0.8, 1)] == list("  ··░▒▓██")


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
    assert text_width(text) == columns


@given(st.text(max_size=12))
def test_printable_text_has_no_control_characters(text: str) -> None:
    printed = printable(text)
    assert len(printed) == len(text)
    assert all(letter.isprintable() or letter in JOINERS for letter in printed)
    assert "▁" not in printed
    assert not any(unicodedata.category(character) == "Cc" for character in printed)


def test_matrix_by_hand() -> None:
    text = render_matrix([[1, 0, 0], [0.1, 0.5, 0.9]], ["▁the", "▁猫", "s"], ["▁la", "▁chats"])
    assert text == "\n".join(
        [
            "        ·the ·猫 s",
            "   ·la  ████",
            "·chats  ···· ▒▒▒ █",
        ]
    )


@given(source=tokens, target=tokens, columns=st.integers(20, 60))
def test_blocks_are_below_their_labels(source: list[str], target: list[str], columns: int) -> None:
    """Every token once, in order: side by side if they fit, else vertical, with its block below."""
    weights = [[1.0] * len(source) for _ in target]
    rows = [truncate(printable(token), max(8, columns // 3)) for token in target]
    position = max(map(text_width, rows)) + 2
    labels = [printable(token) for token in source]
    blocks = [block.split("\n") for block in render_matrix(weights, source, target, columns).split("\n\n")]
    if (
        len(blocks) == 1
        and len(blocks[0]) == 1 + len(target)
        and position + sum(max(1, text_width(n)) + 1 for n in labels) - 1 <= columns
    ):
        header, *lines = [terminal_columns(line) for line in blocks[0]]
        for label in labels:
            cell = max(1, text_width(label))
            assert "".join(header[position : position + cell]).strip() == "".join(terminal_columns(label)).strip()
            assert all(line[position : position + cell] == ["█"] * cell for line in lines)
            position += cell + 1
        return
    index = 0
    for block in blocks:
        lines = [terminal_columns(line) for line in block[len(block) - len(target) :]]
        count = len("".join(lines[0][position:])) // 2
        above = [terminal_columns(line) + [" "] * columns for line in block[: len(block) - len(target)]]
        for number in range(count):
            stack = [line[position + 2 * number] for line in above]
            letters = ["".join(terminal_columns(letter)) for letter in grapheme_clusters(labels[index])]
            printed = letters if len(letters) <= 14 else [*letters[:13], "⋮"]
            assert "".join(stack).strip() == "".join(printed).strip()
            assert all(line[position + 2 * number : position + 2 * number + 2] == ["█", "█"] for line in lines)
            index += 1
    assert index == len(source)


@given(source=st.lists(st.sampled_from(["a", "ab", "猫"]), min_size=20, max_size=40), columns=st.integers(20, 60))
@example(source=["a"] * 20, columns=21)
def test_no_line_is_longer_than_the_terminal(source: list[str], columns: int) -> None:
    for line in render_matrix([[1.0] * len(source)] * 2, source, ["x", "yz"], columns).split("\n"):
        assert text_width(line) <= columns


def test_labels_are_vertical_if_they_do_not_fit() -> None:
    text = render_matrix([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]], ["▁cats", "▁猫", "a\u0301"], ["x", "yz"], columns=9)
    assert text == "\n".join(
        ["    ·", "    c", "    a", "    t ·", "    s 猫", " x  ██", "yz    ██", "", "    a\u0301", " x  ▒▒", "yz"]
    )


def test_long_labels_are_truncated() -> None:
    text = render_matrix([[1.0, 0.0]], ["a" * 10_000, "b"], ["c" * 10_000], columns=40)
    assert max(map(text_width, text.split("\n"))) <= 40
    assert len(text.split("\n")) < 20
    assert "⋮" in text
    assert "…" in text


def test_the_largest_weight_of_a_row_has_its_own_color_and_blanks_have_none() -> None:
    weights = [[0.9, 0.3, 0.0]]
    text = render_matrix(weights, ["a", "b", "d"], ["c"], colored=True)
    assert text.endswith(f"{ORANGE}█\x1b[0m {BLUE}░\x1b[0m")
    plain = text.replace(ORANGE, "").replace(BLUE, "").replace("\x1b[0m", "")
    assert plain == render_matrix(weights, ["a", "b", "d"], ["c"])


@pytest.mark.parametrize("word", ["می\u200cخواهم", "क्\u200dष", "👨\u200d👩"])
def test_joiners_between_letters_stay(word: str) -> None:
    assert printable(word) == word
    assert printable("\u200d") == "�"


def test_every_target_token_needs_a_row() -> None:
    with pytest.raises(ValueError, match="zip"):
        render_matrix([[1.0]], ["a"], ["b", "c"])


def test_long_positions_are_listed_below_their_target_token() -> None:
    text = render_list([[0.25, 0.75]], ["Mary went home.", "John\x1b[31m slept."], ["home"], 60).splitlines()
    assert text[0] == "home"
    assert text[1] == "   25% ██         Mary went home."
    assert text[2] == "   75% ████████   John�[31m slept."
