"""Alignment error rate, and reading links from files."""

from pathlib import Path

import pytest

from regard.evaluation.alignment_error import GoldAlignment, read_links, score_alignment


def test_alignment_error_by_hand() -> None:
    """As Och and Ney define it: possible links count for precision, sure links for recall."""
    gold = [GoldAlignment({(0, 0), (1, 1)}, {(0, 0), (1, 1), (1, 2)}), GoldAlignment({(0, 0)}, {(0, 0)})]
    score = score_alignment([{(0, 0), (1, 2), (5, 5)}, set()], gold)
    assert score.precision == pytest.approx(100 * 2 / 3)
    assert score.recall == pytest.approx(100 * 1 / 3)
    assert score.aer == pytest.approx(100 * (1 - (1 + 2) / (3 + 3)))
    assert (score.links, score.gold) == (3, 3)
    assert score_alignment([each.sure for each in gold], gold).aer == 0
    with pytest.raises(ValueError, match="there are 1 lines of links and 2 of gold"):
        score_alignment([set()], gold)


def test_links_are_read_from_0_or_from_1(tmp_path: Path) -> None:
    path = tmp_path / "x.links"
    path.write_text("1-1 2p3 4?1\n\n1-2:0.75\n")
    alignments, first = read_links(path)
    assert first == 1
    assert alignments == [
        GoldAlignment({(0, 0)}, {(0, 0), (1, 2), (3, 0)}),
        GoldAlignment(set(), set()),
        GoldAlignment({(0, 1)}, {(0, 1)}),
    ]
    path.write_text("0-1\n")
    assert read_links(path) == ([GoldAlignment({(0, 1)}, {(0, 1)})], 0)
    for invalid in ("1-x", "12", "a", "1--2", "-1-2", "1-9999999"):
        path.write_text(f"0-0\n0-0 {invalid}\n")
        with pytest.raises(ValueError, match=r"line 2: .* is no link, such as 3-5"):
            read_links(path)
