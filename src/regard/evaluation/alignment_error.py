"""How well one word alignment agrees with another (Och and Ney 2003)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.data.word_links import read_link_lines
from regard.errors import RegardError

Links = set[tuple[int, int]]


@dataclass(frozen=True)
class Gold:
    """What is right of one pair: sure links, and possible ones, which sure ones are, too."""

    sure: Links
    possible: Links


@dataclass(frozen=True)
class Agreement:
    """Per cent. aer: alignment error rate. precision: of links found, by possible ones. recall: of sure ones."""

    aer: float
    precision: float
    recall: float
    links: int
    gold: int


def read_links(path: Path) -> tuple[list[Gold], int]:
    """A file's links, counted from 0, and what it counts from: 1 if no word is called 0. Raises RegardError."""
    found = list(read_link_lines(path))
    words = [word for some in found for source, _, target in some for word in (source, target)]
    first = 0 if not words or 0 in words else 1
    read = []
    for some in found:
        sure = {(source - first, target - first) for source, kind, target in some if kind == "-"}
        read.append(Gold(sure, sure | {(source - first, target - first) for source, _, target in some}))
    return read, first


def agreement(found: Sequence[Links], gold: Sequence[Gold]) -> Agreement:
    """Of links that were found with those that are right, over all pairs."""
    if len(found) != len(gold):
        raise RegardError(f"there are {len(found):,} lines of links and {len(gold):,} of gold; each needs one.")
    links = sum(len(each) for each in found)
    sure = sum(len(each.sure) for each in gold)
    in_sure = sum(len(each & right.sure) for each, right in zip(found, gold, strict=True))
    in_possible = sum(len(each & right.possible) for each, right in zip(found, gold, strict=True))
    return Agreement(
        aer=100 * (1 - (in_sure + in_possible) / max(1, links + sure)),
        precision=100 * in_possible / max(1, links),
        recall=100 * in_sure / max(1, sure),
        links=links,
        gold=sure,
    )
