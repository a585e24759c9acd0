"""An alignment drawn in the terminal: a row for each target piece, a column for each source piece."""

import unicodedata
from collections.abc import Sequence

SHADES = " ░▒▓█"


def shade(weight: float) -> str:
    """The block for a weight between 0 and 1."""
    return SHADES[min(len(SHADES) - 1, int(weight * len(SHADES)))]


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


def matrix(weights: Sequence[Sequence[float]], source: Sequence[str], target: Sequence[str], columns: int = 100) -> str:
    """Lines of text. weights [target][source]; sources that do not fit into the columns are left out, and said so."""
    left = max((width(visible(piece)) for piece in target), default=0)
    cells = [max(1, width(visible(piece))) for piece in source]
    shown = len(cells)
    if left + 1 + sum(cells) + shown > columns:
        shown, used = 0, left + 3  # room for the mark that something is left out
        while shown < len(cells) and used + cells[shown] + 1 <= columns:
            used += cells[shown] + 1
            shown += 1
    names = [visible(piece) for piece in source[:shown]]
    names = [name + " " * (cell - width(name)) for name, cell in zip(names, cells, strict=False)]
    header = " ".join(names)
    lines = [" " * (left + 2) + (f"{header} …" if shown < len(source) else header.rstrip())]
    for piece, row in zip(target, weights, strict=True):
        name = visible(piece)
        blocks = " ".join(shade(float(weight)) * cell for weight, cell in zip(row[:shown], cells[:shown], strict=True))
        lines.append(" " * (left - width(name)) + name + "  " + blocks.rstrip())
    return "\n".join(lines)
