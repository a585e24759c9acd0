"""An alignment drawn in the terminal: a row for each target token, a column for each source token."""

import unicodedata
from collections.abc import Sequence

SHADES = " ·░▒▓█"
CELL_WIDTH = 2  # columns of a source token with a vertical label
BAR_WIDTH = 10  # columns of a weight of 1 beside a long source position
MAX_VERTICAL_CHARACTERS = 14
# Blue, and orange for the largest of a row: everyone can tell them apart, on light and dark backgrounds. The block
# shows how large a weight is: a color alone would be faint on one background and bold on the other.
BLUE, ORANGE = "\x1b[38;2;38;121;214m", "\x1b[38;2;222;112;18m"
MIN_WEIGHT = 0.04  # smaller weights are left blank
JOINERS = "\u200c\u200d"  # zero-width characters that change how the letters around them are drawn


def shade_block(weight: float) -> str:
    """The block for a weight between 0 and 1: blank, a dot up to a fifth, then one for each fifth."""
    return SHADES[0] if weight < MIN_WEIGHT else SHADES[1 + min(len(SHADES) - 2, int(weight * (len(SHADES) - 1)))]


def text_width(text: str) -> int:
    """How many columns a text takes: East Asian characters take two, combining marks none."""
    columns = 0
    for character in text:
        if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
            continue
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return columns


def printable(token: str) -> str:
    """A token without characters that would disturb a terminal."""
    token = token.replace("▁", "·")
    allowed = JOINERS if any(letter.isalnum() or text_width(letter) == 2 for letter in token) else ""
    return "".join(letter if letter.isprintable() or letter in allowed else "�" for letter in token)


def truncate(text: str, max_width: int) -> str:
    """A text of at most so many columns; a longer one ends in …"""
    if text_width(text) <= max_width:
        return text
    start = ""
    for cluster in grapheme_clusters(text):
        if text_width(start + cluster) > max_width - 1:
            break
        start += cluster
    return f"{start}…"


def grapheme_clusters(text: str) -> list[str]:
    """Its characters, each with its combining marks."""
    clusters: list[str] = []
    for character in text:
        if clusters and not text_width(character):
            clusters[-1] += character
        else:
            clusters.append(character)
    return clusters


def render_matrix(
    weights: Sequence[Sequence[float]],
    source: Sequence[str],
    target: Sequence[str],
    columns: int = 100,
    *,
    colored: bool = False,
) -> str:
    """Lines of text. weights: [target][source]. Labels of source tokens are side by side if they fit into so many
    columns, else vertical, and the matrix is split into several, one below the other, if those do not fit either."""
    row_labels = [truncate(printable(token), max(8, columns // 3)) for token in target]
    left = max((text_width(label) for label in row_labels), default=0)
    column_labels = [printable(token) for token in source]
    cells = [max(1, text_width(label)) for label in column_labels]
    if left + 2 + sum(cells) + max(0, len(cells) - 1) <= columns:
        header = [
            " ".join(label + " " * (cell - text_width(label)) for label, cell in zip(column_labels, cells, strict=True))
        ]
        return "\n".join(_matrix_lines(weights, row_labels, left, header, cells, " ", 0, colored=colored))
    columns_per_block = max(1, (columns - left - 2) // CELL_WIDTH)
    blocks = []
    for start in range(0, len(source), columns_per_block):
        labels = column_labels[start : start + columns_per_block]
        cells, header = [CELL_WIDTH] * len(labels), _vertical_labels(labels)
        blocks.append("\n".join(_matrix_lines(weights, row_labels, left, header, cells, "", start, colored=colored)))
    return "\n\n".join(blocks)


def render_list(weights: Sequence[Sequence[float]], source: Sequence[str], target: Sequence[str], columns: int) -> str:
    """Each target token, and below it every source position with its weight in a line: for long positions, such as
    sentences."""
    lines = []
    for token, row in zip(target, weights, strict=True):
        lines.append(printable(token))
        for label, weight in zip(source, row, strict=True):
            bar = "█" * round(BAR_WIDTH * weight)
            text = truncate(printable(label), max(8, columns - BAR_WIDTH - 8))
            lines.append(f"  {weight:4.0%} {bar:{BAR_WIDTH}} {text}")
    return "\n".join(lines)


def _vertical_labels(labels: Sequence[str]) -> list[str]:
    """Lines in which each label is read downward and ends in the last line."""
    stacks = []
    for label in labels:
        letters = grapheme_clusters(label)
        is_long = len(letters) > MAX_VERTICAL_CHARACTERS
        stacks.append([*letters[: MAX_VERTICAL_CHARACTERS - 1], "⋮"] if is_long else letters)
    height = max(map(len, stacks), default=0)
    padded = [[" "] * (height - len(stack)) + stack for stack in stacks]
    return [
        "".join(stack[line] + " " * (CELL_WIDTH - text_width(stack[line])) for stack in padded)
        for line in range(height)
    ]


def _matrix_lines(
    weights: Sequence[Sequence[float]],
    row_labels: Sequence[str],
    left: int,
    header: Sequence[str],
    cells: Sequence[int],
    separator: str,
    start: int,
    *,
    colored: bool,
) -> list[str]:
    """The header and the rows. cells: the widths of the columns, of which the first is `start`."""
    lines = [(" " * (left + 2) + line).rstrip() for line in header]
    for label, row in zip(row_labels, weights, strict=True):
        visible = [float(weight) for weight in row[start : start + len(cells)]]
        largest = max(map(float, row), default=0.0)
        blocks = separator.join(
            _cell(weight, cell, colored, is_largest=weight == largest)
            for weight, cell in zip(visible, cells, strict=True)
        )
        lines.append((" " * (left - text_width(label)) + label + "  " + blocks).rstrip())
    return lines


def _cell(weight: float, width: int, colored: bool, *, is_largest: bool) -> str:
    block = shade_block(weight) * width
    return f"{ORANGE if is_largest else BLUE}{block}\x1b[0m" if colored and block.strip() else block
