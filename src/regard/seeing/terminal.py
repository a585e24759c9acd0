"""An alignment drawn in the terminal: a row for each target piece, a column for each source piece."""

import unicodedata
from collections.abc import Sequence

SHADES = " ░▒▓█"
CELL = 2  # columns of a source piece whose name stands upright
TALLEST = 14  # lines of names that stand upright
# From dark blue to yellow, which all eyes tell apart, and which is seen on light ground and on dark.
SCALE = ((0, 34, 78), (53, 69, 109), (102, 105, 112), (149, 143, 120), (200, 186, 104), (254, 232, 56))
SEEN = 0.02  # weights below this are left blank


def shade(weight: float) -> str:
    """The block for a weight between 0 and 1."""
    return SHADES[min(len(SHADES) - 1, int(weight * len(SHADES)))]


def colour(weight: float) -> tuple[int, int, int]:
    """Red, green and blue for a weight between 0 and 1."""
    at = min(1.0, max(0.0, weight)) * (len(SCALE) - 1)
    low = min(len(SCALE) - 2, int(at))
    red, green, blue = (round(a + (b - a) * (at - low)) for a, b in zip(SCALE[low], SCALE[low + 1], strict=True))
    return red, green, blue


def width(text: str) -> int:
    """How many columns a text takes: East Asian characters take two, combining marks none."""
    columns = 0
    for character in text:
        if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
            continue
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return columns


def visible(piece: str) -> str:
    """A piece of text with nothing in it that would disturb a terminal."""
    piece = piece.replace("▁", "·")
    return "".join(character if character.isprintable() else "�" for character in piece)


def short(text: str, most: int) -> str:
    """A text in so many columns at most; what is longer ends in …"""
    if width(text) <= most:
        return text
    kept = ""
    for cluster in clusters(text):
        if width(kept + cluster) > most - 1:
            break
        kept += cluster
    return f"{kept}…"


def clusters(text: str) -> list[str]:
    """Its characters, each with the marks that stand on it."""
    found: list[str] = []
    for character in text:
        if found and not width(character):
            found[-1] += character
        else:
            found.append(character)
    return found


def matrix(
    weights: Sequence[Sequence[float]],
    source: Sequence[str],
    target: Sequence[str],
    columns: int = 100,
    *,
    coloured: bool = False,
) -> str:
    """Lines of text. weights [target][source]. Source pieces' names stand side by side where there is room, else
    upright, and where these do not fit either, in several parts one below the other."""
    rows = [short(visible(piece), max(8, columns // 3)) for piece in target]
    left = max((width(name) for name in rows), default=0)
    names = [visible(piece) for piece in source]
    cells = [max(1, width(name)) for name in names]
    if left + 2 + sum(cells) + max(0, len(cells) - 1) <= columns:
        header = [" ".join(name + " " * (cell - width(name)) for name, cell in zip(names, cells, strict=True))]
        return "\n".join(_part(weights, rows, left, header, cells, " ", 0, coloured=coloured))
    at_once = max(1, (columns - left - 2) // CELL)
    parts = []
    for at in range(0, len(source), at_once):
        some = names[at : at + at_once]
        parts.append(
            "\n".join(_part(weights, rows, left, _upright(some), [CELL] * len(some), "", at, coloured=coloured))
        )
    return "\n\n".join(parts)


def _upright(names: Sequence[str]) -> list[str]:
    """Lines in which each name is read from above, its foot on the last."""
    stacks = []
    for name in names:
        letters = clusters(name)
        stacks.append([*letters[: TALLEST - 1], "⋮"] if len(letters) > TALLEST else letters)
    height = max(map(len, stacks), default=0)
    padded = [[" "] * (height - len(stack)) + stack for stack in stacks]
    return ["".join(stack[line] + " " * (CELL - width(stack[line])) for stack in padded) for line in range(height)]


def _part(
    weights: Sequence[Sequence[float]],
    rows: Sequence[str],
    left: int,
    header: Sequence[str],
    cells: Sequence[int],
    between: str,
    at: int,
    *,
    coloured: bool,
) -> list[str]:
    lines = [(" " * (left + 2) + line).rstrip() for line in header]
    for name, row in zip(rows, weights, strict=True):
        some = [float(weight) for weight in row[at : at + len(cells)]]
        blocks = between.join(_block(weight, cell, coloured) for weight, cell in zip(some, cells, strict=True))
        lines.append((" " * (left - width(name)) + name + "  " + blocks).rstrip())
    return lines


def _block(weight: float, cell: int, coloured: bool) -> str:
    if not coloured:
        return shade(weight) * cell
    if weight < SEEN:
        return " " * cell
    red, green, blue = colour(weight)
    return f"\x1b[38;2;{red};{green};{blue}m{'█' * cell}\x1b[0m"
