"""Word alignments: links between source words and target words. Words are separated by white space.

A line has the links of one sentence pair. 3-5 links the fourth source word to the sixth target word (the third to the
fifth, where a file counts from 1). A link 3p5 or 3?5 is possible, not sure.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.example import Example
from regard.data.input_files import read_lines
from regard.data.tokenizers.tokenizer import SPACE
from regard.errors import RegardError

LINK = re.compile(r"(\d{1,6})([-p?])(\d{1,6})(?::[\d.eE+-]+)?")


def read_link_lines(path: Path) -> Iterator[list[tuple[int, str, int]]]:
    """Each line's links: source word, separator, target word, counted as in the file. Raises RegardError."""
    for number, (line, problem) in enumerate(read_lines(path), 1):
        links = []
        for link in line.split():
            match = LINK.fullmatch(link)
            if match is None or problem:
                raise RegardError(f"{path}, line {number:,}: {link[:40]!r} is no link, such as 3-5 or 3p5.")
            links.append((int(match[1]), match[2], int(match[3])))
        yield links


def attach_links(examples: Iterator[Example], path: Path) -> Iterator[Example]:
    """Examples with their links, one line of the file for each; possible links count, too. Raises RegardError."""
    lines = read_link_lines(path)
    number, has_links, has_zero = 0, False, False
    for number, example in enumerate(examples, 1):
        line = next(lines, None)
        if line is None:
            raise RegardError(_too_short(path, number - 1, example.file))
        links = tuple((source, target) for source, _, target in line)
        has_links, has_zero = has_links or bool(links), has_zero or any(0 in link for link in links)
        source_words, target_words = len(example.source.split()), len(example.target.split())
        out_of_range = any(source >= source_words or target >= target_words for source, target in links)
        problem = example.problem or ("a link to a word that is not there" if out_of_range else "")
        yield replace(example, links=links, problem=problem)
    extra = sum(1 for _ in lines)
    if extra:
        raise RegardError(
            f"{path} has {number + extra:,} lines, but there are {number:,} pairs: it needs one line for each of them."
        )
    if has_links and not has_zero:
        raise RegardError(f"{path}: no word is called 0, so it seems to count from 1; subtract 1 from all its numbers.")


def _too_short(path: Path, lines: int, file: str) -> str:
    return (
        f"{path} has {lines:,} lines, but {file} more: each pair needs a line of links, which may be empty where none "
        f"are known."
    )


def word_indices(pieces: Sequence[str]) -> list[int]:
    """The index of each piece's word."""
    indices: list[int] = []
    for piece in pieces:
        begins = piece.startswith(SPACE) or not indices
        indices.append((indices[-1] if indices else -1) + begins)
    return indices


def alignment_targets(links: NDArray[np.int64], source: Sequence[str], target: Sequence[str]) -> NDArray[np.float32]:
    """Links [N, 2] of words -> the attention that guided alignment trains toward, [target pieces, source pieces].

    A row is spread evenly over the pieces of all words that the target piece's word is linked to; it is zero if there
    are none.
    """
    rows, columns = np.array(word_indices(target)), np.array(word_indices(source))
    words = np.zeros((rows[-1] + 1, columns[-1] + 1), np.float32)
    known = links[(links[:, 0] < words.shape[1]) & (links[:, 1] < words.shape[0])]
    words[known[:, 1], known[:, 0]] = 1
    weights: NDArray[np.float32] = words[rows][:, columns]
    weights /= np.maximum(weights.sum(1, keepdims=True), 1)
    return weights
