"""Tokens to vectors: table, scale, place."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import reference
from regard.models.embedding import Embedding

POSITIONS = ["none", "sinusoidal", "learned", "rotary"]


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("position", POSITIONS)
def test_it_is_the_scaled_table_plus_the_place(position: str, scale: bool) -> None:
    embedding = Embedding(9, 6, scale=scale, position=position, positions=20)
    tokens = torch.tensor([[3, 0, 8], [1, 1, 2]])
    expected = embedding.weight[tokens] * (6**0.5 if scale else 1)
    if position == "sinusoidal":
        expected = expected + reference.sinusoid(torch.arange(4, 7), 6).float()
    elif position == "learned":
        expected = expected + embedding.place.table.weight[4:7]
    torch.testing.assert_close(embedding(tokens, offset=4), expected)


@given(
    position=st.sampled_from(POSITIONS),
    tokens=st.lists(st.integers(0, 8), min_size=2, max_size=12),
    cut=st.integers(1, 11),
)
def test_piece_by_piece_equals_all_at_once(position: str, tokens: list[int], cut: int) -> None:
    embedding = Embedding(9, 6, scale=True, position=position, positions=12)
    whole = torch.tensor([tokens])
    pieces = [embedding(whole[:, :cut]), embedding(whole[:, cut:], offset=cut)]
    torch.testing.assert_close(torch.cat(pieces, 1), embedding(whole), rtol=0, atol=0)


def test_a_place_that_was_not_learnt_is_refused() -> None:
    embedding = Embedding(9, 6, position="learned", positions=3)
    embedding(torch.zeros(1, 3, dtype=torch.int64))
    with pytest.raises(ValueError, match="place 3 is beyond the 3 places"):
        embedding(torch.zeros(1, 1, dtype=torch.int64), offset=3)


def test_dropout_acts_in_training_only() -> None:
    embedding = Embedding(9, 64, position="sinusoidal", dropout=0.5)
    tokens = torch.arange(9)[None]
    assert 0.4 < (embedding(tokens) == 0).float().mean() < 0.6
    assert not (embedding.eval()(tokens) == 0).any()


def test_scaled_vectors_have_about_unit_variance() -> None:
    torch.manual_seed(0)
    assert Embedding(500, 64, scale=True)(torch.arange(500)[None]).std().item() == pytest.approx(1, rel=0.05)
