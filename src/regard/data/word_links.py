"""Word alignments: which source word and which target word belong together. Words are what blanks separate.

A line is a sentence pair, a link 3-5 says that its fourth source word and its sixth target word belong together (or the
third and the fifth, where a file counts from 1). A link 3p5 or 3?5 is possible, not sure.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.formats.readers import Example, lines_of
from regard.data.tokenizers.tokenizer import SPACE
from regard.errors import RegardError

LINK = re.compile(r"(\d{1,6})([-p?])(\d{1,6})(?::[\d.eE+-]+)?")


def links_in(path: Path) -> Iterator[list[tuple[int, str, int]]]:
    """Of each line (source word, what stands between, target word), as they are counted there. Raises RegardError."""
    for number, (line, wrong) in enumerate(lines_of(path), 1):
        found = []
        for link in line.split():
            parts = LINK.fullmatch(link)
            if parts is None or wrong:
                raise RegardError(f"{path}, line {number:,}: {link[:40]!r} is no link, such as 3-5 or 3p5.")
            found.append((int(parts[1]), parts[2], int(parts[3])))
        yield found


def linked(found: Iterator[Example], path: Path) -> Iterator[Example]:
    """Examples with their links, a line of the file each; possible ones count, too. Raises RegardError."""
    lines = links_in(path)
    number, some, zero = 0, False, False
    for number, example in enumerate(found, 1):
        line = next(lines, None)
        if line is None:
            raise RegardError(_too_short(path, number - 1, example.file))
        links = tuple((source, target) for source, _, target in line)
        some, zero = some or bool(links), zero or any(0 in link for link in links)
        sizes = len(example.source.split()), len(example.target.split())
        beyond = any(source >= sizes[0] or target >= sizes[1] for source, target in links)
        wrong = example.wrong or ("a link to a word that is not there" if beyond else "")
        yield replace(example, links=links, wrong=wrong)
    more = sum(1 for _ in lines)
    if more:
        raise RegardError(
            f"{path} has {number + more:,} lines, but there are {number:,} pairs: it needs one line for each of them."
        )
    if some and not zero:
        raise RegardError(f"{path}: no word is called 0, so it seems to count from 1; subtract 1 from all its numbers.")


def _too_short(path: Path, lines: int, file: str) -> str:
    return (
        f"{path} has {lines:,} lines, but {file} more: each pair needs a line of links, which may be empty where none "
        f"are known."
    )


def words_of(pieces: Sequence[str]) -> list[int]:
    """The number of the word that each piece is part of."""
    numbers: list[int] = []
    for piece in pieces:
        begins = piece.startswith(SPACE) or not numbers
        numbers.append((numbers[-1] if numbers else -1) + begins)
    return numbers


def guide(links: NDArray[np.int64], source: Sequence[str], target: Sequence[str]) -> NDArray[np.float32]:
    """Links [N, 2] of words -> where each target piece should look, [target, source].

    A row is shared by the pieces of all words that the piece's own is linked to; it is empty if there are none.
    """
    rows, columns = np.array(words_of(target)), np.array(words_of(source))
    together = np.zeros((rows[-1] + 1, columns[-1] + 1), np.float32)
    known = links[(links[:, 0] < together.shape[1]) & (links[:, 1] < together.shape[0])]
    together[known[:, 1], known[:, 0]] = 1
    shares: NDArray[np.float32] = together[rows][:, columns]
    shares /= np.maximum(shares.sum(1, keepdims=True), 1)
    return shares
