"""An alignment drawn in the terminal: a row for each target piece, a column for each source piece."""

import unicodedata
from collections.abc import Sequence

SHADES = " ·░▒▓█"
CELL = 2  # columns of a source piece whose name stands upright
BAR = 10  # columns of a whole weight beside a long place
TALLEST = 14  # lines of names that stand upright
# Blue, and orange for the largest of a row: all eyes tell them apart, on light ground and on dark. The block says how
# large a weight is: a colour alone would be faint on one ground and bold on the other.
BLUE, ORANGE = "\x1b[38;2;38;121;214m", "\x1b[38;2;222;112;18m"
SEEN = 0.04  # weights below this are left blank
JOINERS = "\u200c\u200d"  # which decide how the letters around them look


def shade(weight: float) -> str:
    """The block for a weight between 0 and 1: blank, a dot up to a fifth, then one for each fifth."""
    return SHADES[0] if weight < SEEN else SHADES[1 + min(len(SHADES) - 2, int(weight * (len(SHADES) - 1)))]


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
    kept = JOINERS if any(letter.isalnum() or width(letter) == 2 for letter in piece) else ""
    return "".join(letter if letter.isprintable() or letter in kept else "�" for letter in piece)


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


def below(weights: Sequence[Sequence[float]], source: Sequence[str], target: Sequence[str], wide: int) -> str:
    """Each target piece, and below it the places of the source, which are long, line by line with their weights."""
    lines = []
    for piece, row in zip(target, weights, strict=True):
        lines.append(visible(piece))
        for place, weight in zip(source, row, strict=True):
            bar = "█" * round(BAR * weight)
            lines.append(f"  {weight:4.0%} {bar:{BAR}} {short(visible(place), max(8, wide - BAR - 8))}")
    return "\n".join(lines)


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
        most = max(map(float, row), default=0.0)
        blocks = between.join(
            _block(weight, cell, coloured, most=weight == most) for weight, cell in zip(some, cells, strict=True)
        )
        lines.append((" " * (left - width(name)) + name + "  " + blocks).rstrip())
    return lines


def _block(weight: float, cell: int, coloured: bool, *, most: bool) -> str:
    block = shade(weight) * cell
    return f"{ORANGE if most else BLUE}{block}\x1b[0m" if coloured and block.strip() else block
