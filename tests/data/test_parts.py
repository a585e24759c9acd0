"""Sources in parts: a story and a question, or sentence after sentence."""

import pytest
import torch

from regard.data.parts import BETWEEN, has_parts, parted
from regard.models.embedding import Embedding
from regard.sources import Images, Text
from regard.tokens import SEPARATOR

STORY = "Mary went to the hall. John took the milk there."


def test_what_has_no_parts_stays_as_it_is() -> None:
    assert parted("a\tb. C", Text()) == "a\tb. C"
    assert not has_parts(Text())
    assert not has_parts(Images())


def test_tabs_divide_parts() -> None:
    assert parted(f"{STORY}\tWhere is Mary?", Text(segments=2)) == f"{STORY}{BETWEEN}Where is Mary?"


def test_each_sentence_is_a_part_if_asked_for() -> None:
    once = parted(f"{STORY}\tWhere is Mary?", Text(segments=9, sentences=True))
    assert once.split(BETWEEN) == ["Mary went to the hall.", "John took the milk there.", "Where is Mary?"]
    assert parted(once, Text(segments=9, sentences=True)) == once


def test_sentences_need_vectors() -> None:
    with pytest.raises(ValueError, match="segments"):
        Text(sentences=True)


def test_recent_parts_are_counted_from_the_last_one_back() -> None:
    table = Embedding(9, 4, segments=3, recent=True)
    with torch.no_grad():
        table.weight.zero_()
        assert table.segment is not None
        table.segment.copy_(torch.arange(3.0)[:, None].expand(3, 4))
    tokens = torch.tensor([[5, SEPARATOR, 6, SEPARATOR, 7, SEPARATOR, 8, 3], [5, SEPARATOR, 6, 3, 0, 0, 0, 0]])
    # Four parts and three vectors: the oldest share one. What is padded comes after the last part and is of it.
    assert table(tokens)[..., 0].tolist() == [[2, 2, 2, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]]
