"""Alignment error rate, precision and recall of word alignments (Och and Ney 2003)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.data.word_links import read_link_lines
from regard.errors import RegardError

Links = set[tuple[int, int]]


@dataclass(frozen=True)
class GoldAlignment:
    """The reference links of one pair: sure ones, and possible ones, which include the sure ones."""

    sure: Links
    possible: Links


@dataclass(frozen=True)
class AlignmentScore:
    """In percent. aer: alignment error rate. precision: predicted links that are possible. recall: sure links that were
    predicted. links, gold: how many there are, predicted and sure."""

    aer: float
    precision: float
    recall: float
    links: int
    gold: int


def read_links(path: Path) -> tuple[list[GoldAlignment], int]:
    """A file's links, counted from 0, and the number it counts from: 1 if no word is called 0. Raises RegardError."""
    lines = list(read_link_lines(path))
    words = [word for links in lines for source, _, target in links for word in (source, target)]
    first = 0 if not words or 0 in words else 1
    alignments = []
    for links in lines:
        sure = {(source - first, target - first) for source, kind, target in links if kind == "-"}
        possible = {(source - first, target - first) for source, _, target in links}
        alignments.append(GoldAlignment(sure, sure | possible))
    return alignments, first


def score_alignment(predicted: Sequence[Links], gold: Sequence[GoldAlignment]) -> AlignmentScore:
    """Predicted links against the reference links, over all pairs."""
    if len(predicted) != len(gold):
        raise RegardError(f"there are {len(predicted):,} lines of links and {len(gold):,} of gold; each needs one.")
    links = sum(len(each) for each in predicted)
    sure = sum(len(each.sure) for each in gold)
    in_sure = sum(len(each & reference.sure) for each, reference in zip(predicted, gold, strict=True))
    in_possible = sum(len(each & reference.possible) for each, reference in zip(predicted, gold, strict=True))
    return AlignmentScore(
        aer=100 * (1 - (in_sure + in_possible) / max(1, links + sure)),
        precision=100 * in_possible / max(1, links),
        recall=100 * in_sure / max(1, sure),
        links=links,
        gold=sure,
    )
