"""Token embeddings: table, scale, position."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import reference
from regard.models.token_embedding import Embedding
from regard.special_tokens import EOS, PAD

POSITIONS = ["none", "sinusoidal", "learned", "rotary"]


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("position", POSITIONS)
def test_embedding_is_the_scaled_table_plus_the_position(position: str, scale: bool) -> None:
    embedding = Embedding(9, 6, scale=scale, position=position, max_positions=20)
    tokens = torch.tensor([[3, 0, 8], [1, 1, 2]])
    expected = embedding.weight[tokens] * (6**0.5 if scale else 1)
    if position == "sinusoidal":
        expected = expected + reference.sinusoid(torch.arange(4, 7), 6).float()
    elif position == "learned":
        expected = expected + embedding.position.table.weight[4:7]
    torch.testing.assert_close(embedding(tokens, offset=4), expected)


@given(
    position=st.sampled_from(POSITIONS),
    tokens=st.lists(st.integers(0, 8), min_size=2, max_size=12),
    cut=st.integers(1, 11),
)
def test_pieces_with_offsets_equal_the_whole(position: str, tokens: list[int], cut: int) -> None:
    embedding = Embedding(9, 6, scale=True, position=position, max_positions=12)
    whole = torch.tensor([tokens])
    pieces = [embedding(whole[:, :cut]), embedding(whole[:, cut:], offset=cut)]
    torch.testing.assert_close(torch.cat(pieces, 1), embedding(whole), rtol=0, atol=0)


def test_position_beyond_learned_positions_raises() -> None:
    embedding = Embedding(9, 6, position="learned", max_positions=3)
    embedding(torch.zeros(1, 3, dtype=torch.int64))
    with pytest.raises(ValueError, match="position 3 is beyond the 3 positions"):
        embedding(torch.zeros(1, 1, dtype=torch.int64), offset=3)


def test_dropout_acts_in_training_only() -> None:
    embedding = Embedding(9, 64, position="sinusoidal", dropout=0.5)
    tokens = torch.arange(9)[None]
    assert 0.4 < (embedding(tokens) == 0).float().mean() < 0.6
    assert not (embedding.eval()(tokens) == 0).any()


def test_scaled_vectors_have_about_unit_variance() -> None:
    torch.manual_seed(0)
    assert Embedding(500, 64, scale=True)(torch.arange(500)[None]).std().item() == pytest.approx(1, rel=0.05)


def reference_sentence_sums(table: torch.Tensor, sentences: list[list[int]]) -> torch.Tensor:
    """Each sentence as the sum of its tokens, weighted by position and dimension (Sukhbaatar et al. 2015, section
    4.1), and the vector of its end."""
    E = table.shape[1]
    vectors = []
    for tokens_of_sentence in sentences:
        total = table[EOS].clone()
        for position, token in enumerate(tokens_of_sentence, 1):
            for k in range(1, E + 1):
                fraction = position / max(1, len(tokens_of_sentence))
                total[k - 1] += table[token, k - 1] * ((1 - fraction) - k / E * (1 - 2 * fraction))
        vectors.append(total)
    return torch.stack(vectors)


def test_sentence_vectors_are_weighted_sums_numbered_from_the_last() -> None:
    torch.manual_seed(1)
    embedding = Embedding(9, 6, segments=3, count_back=True, sentences_only=True)
    first, second = [[4, 5, 6], [7], [], [8, 4]], [[5, 5]]
    rows = [[token for sentence in each for token in (*sentence, EOS)] for each in (first, second)]
    tokens = torch.tensor([rows[0], rows[1] + [PAD] * (len(rows[0]) - len(rows[1]))])
    x, mask = embedding.read(tokens, tokens != PAD)
    assert mask.tolist() == [[True] * 4, [True] + [False] * 3]
    segments_back = embedding.segment[torch.tensor([2, 2, 1, 0])]
    torch.testing.assert_close(x[0], reference_sentence_sums(embedding.weight, first) + segments_back)
    torch.testing.assert_close(x[1, :1], reference_sentence_sums(embedding.weight, second) + embedding.segment[:1])
    assert (x[1, 1:] == 0).all()
    alone, _ = embedding.read(tokens[1:, :3], tokens[1:, :3] != PAD)
    torch.testing.assert_close(alone[0, 0], x[1, 0])
