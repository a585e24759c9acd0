"""Sources in parts: a story and a question, or sentence after sentence."""

import pytest
import torch

from regard.data.segments import BETWEEN, encoded, framed, has_parts, parted
from regard.models.embedding import Embedding
from regard.models.settings import ImageSource, TextSource
from regard.special_tokens import BEGIN, END

STORY = "Mary went to the hall. John took the milk there."


def test_what_has_no_parts_stays_as_it_is() -> None:
    assert parted("a\tb. C", TextSource()) == "a\tb. C"
    assert not has_parts(TextSource())
    assert not has_parts(ImageSource())


def test_tabs_divide_parts() -> None:
    assert parted(f"{STORY}\tWhere is Mary?", TextSource(segments=2)) == f"{STORY}{BETWEEN}Where is Mary?"


def test_each_sentence_is_a_part_if_asked_for() -> None:
    once = parted(f"{STORY}\tWhere is Mary?", TextSource(segments=9, sentence_segments=True))
    assert once.split(BETWEEN) == ["Mary went to the hall.", "John took the milk there.", "Where is Mary?"]
    assert parted(once, TextSource(segments=9, sentence_segments=True)) == once


def test_sentences_need_vectors() -> None:
    with pytest.raises(ValueError, match="segments"):
        TextSource(sentence_segments=True)


def test_recent_parts_are_counted_from_the_last_one_back() -> None:
    table = Embedding(9, 4, segments=3, count_back=True)
    with torch.no_grad():
        table.weight.zero_()
        assert table.segment is not None
        table.segment.copy_(torch.arange(3.0)[:, None].expand(3, 4))
    tokens = torch.tensor([[5, END, 6, END, 7, END, 8, END], [5, END, 6, END, 0, 0, 0, 0]])
    # Four parts and three vectors: the oldest share one. An end is of the part that it ends.
    assert table(tokens)[..., 0].tolist() == [[2, 2, 2, 2, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0]]


def test_parts_are_counted_from_the_first_one_on_in_each_text_of_a_row() -> None:
    table = Embedding(9, 4, segments=2)
    with torch.no_grad():
        table.weight.zero_()
        assert table.segment is not None
        table.segment.copy_(torch.arange(2.0)[:, None].expand(2, 4))
    rows = torch.tensor([[5, END, 6, END, 5, END, 7, END]])
    assert table(rows)[..., 0].tolist() == [[0, 0, 1, 1, 1, 1, 1, 1]]
    positions = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3]])
    assert table(rows, positions=positions)[..., 0].tolist() == [[0, 0, 1, 1, 0, 0, 1, 1]]


def test_parts_end_each_and_a_mark_may_stand_before_all() -> None:
    def cut(texts):
        return [[len(word) + 10 for word in text.split()] for text in texts]

    pair = TextSource(segments=2, bos=True)
    assert encoded(["a bb\tccc", "dd"], pair, cut) == [[11, 12, END, 13], [12]]
    assert encoded(["a bb\tccc"], TextSource(), cut) == [[11, 12, 13]]
    assert framed([11, 12, END, 13], pair) == [BEGIN, 11, 12, END, 13, END]
    assert framed([11, 12, END, 13], pair, 5) == [BEGIN, 12, END, 13, END]
    assert framed([11, 12], TextSource(), 2) == [11, END]
