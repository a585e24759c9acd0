"""Sources in segments: a story and a question, or the sentences of a text."""

import pytest
import torch

from regard.data.segments import SEGMENT_SEPARATOR, add_special_tokens, encode_segments, has_segments, separate_segments
from regard.models.settings import ImageSource, TextSource
from regard.models.token_embedding import Embedding
from regard.special_tokens import BOS, EOS

STORY = "Mary went to the hall. John took the milk there."


def test_a_source_without_segments_is_unchanged() -> None:
    assert separate_segments("a\tb. C", TextSource()) == "a\tb. C"
    assert not has_segments(TextSource())
    assert not has_segments(ImageSource())


def test_tabs_separate_segments() -> None:
    assert (
        separate_segments(f"{STORY}\tWhere is Mary?", TextSource(segments=2))
        == f"{STORY}{SEGMENT_SEPARATOR}Where is Mary?"
    )


def test_each_sentence_is_a_segment_if_set() -> None:
    once = separate_segments(f"{STORY}\tWhere is Mary?", TextSource(segments=9, sentence_segments=True))
    assert once.split(SEGMENT_SEPARATOR) == ["Mary went to the hall.", "John took the milk there.", "Where is Mary?"]
    assert separate_segments(once, TextSource(segments=9, sentence_segments=True)) == once


def test_sentence_segments_need_segment_embeddings() -> None:
    with pytest.raises(ValueError, match="segments"):
        TextSource(sentence_segments=True)


def test_segments_may_be_counted_back_from_the_last_one() -> None:
    table = Embedding(9, 4, segments=3, count_back=True)
    with torch.no_grad():
        table.weight.zero_()
        assert table.segment is not None
        table.segment.copy_(torch.arange(3.0)[:, None].expand(3, 4))
    tokens = torch.tensor([[5, EOS, 6, EOS, 7, EOS, 8, EOS], [5, EOS, 6, EOS, 0, 0, 0, 0]])
    # Four segments and three embeddings: the oldest share one. An end token belongs to the segment that it ends.
    assert table(tokens)[..., 0].tolist() == [[2, 2, 2, 2, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0]]


def test_segments_are_counted_in_each_text_of_a_packed_row() -> None:
    table = Embedding(9, 4, segments=2)
    with torch.no_grad():
        table.weight.zero_()
        assert table.segment is not None
        table.segment.copy_(torch.arange(2.0)[:, None].expand(2, 4))
    rows = torch.tensor([[5, EOS, 6, EOS, 5, EOS, 7, EOS]])
    assert table(rows)[..., 0].tolist() == [[0, 0, 1, 1, 1, 1, 1, 1]]
    positions = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3]])
    assert table(rows, positions=positions)[..., 0].tolist() == [[0, 0, 1, 1, 0, 0, 1, 1]]


def test_segments_end_with_an_end_token_after_an_optional_begin_token() -> None:
    def encode(texts):
        return [[len(word) + 10 for word in text.split()] for text in texts]

    pair = TextSource(segments=2, bos=True)
    assert encode_segments(["a bb\tccc", "dd"], pair, encode) == [[11, 12, EOS, 13], [12]]
    assert encode_segments(["a bb\tccc"], TextSource(), encode) == [[11, 12, 13]]
    assert add_special_tokens([11, 12, EOS, 13], pair) == [BOS, 11, 12, EOS, 13, EOS]
    assert add_special_tokens([11, 12, EOS, 13], pair, 5) == [BOS, 12, EOS, 13, EOS]
    assert add_special_tokens([11, 12], TextSource(), 2) == [11, EOS]
