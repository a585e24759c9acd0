"""Positions in embeddings and positions inside attention."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import T5, ALiBi, Attention, Learned, Rotary, Shaw, Sinusoidal, attend, reference, weights


def test_sinusoidal_equals_the_paper() -> None:
    actual = Sinusoidal(6)(torch.zeros(1, 50, 6))[0]
    torch.testing.assert_close(actual.double(), reference.sinusoid(torch.arange(50), 6), rtol=1e-6, atol=1e-6)
    # position 1, first pair: sin 1, cos 1; second pair: 1 / 10000^(2/6)
    assert actual[1, :4].tolist() == pytest.approx([0.841471, 0.540302, 0.046399, 0.998923], abs=1e-5)


@given(st.integers(0, 300), st.integers(0, 40), st.sampled_from([4, 6, 16]))
def test_sinusoid_shift_is_a_fixed_linear_map(p: int, k: int, width: int) -> None:
    """The map turns each pair by k w_i and does not know p."""
    rotation = torch.zeros(width, width, dtype=torch.float64)
    for i in range(0, width, 2):
        angle = torch.tensor(k / 10000 ** (i / width), dtype=torch.float64)
        rotation[i, i], rotation[i, i + 1] = angle.cos(), angle.sin()  # sin(a + b) = sin a cos b + cos a sin b
        rotation[i + 1, i], rotation[i + 1, i + 1] = -angle.sin(), angle.cos()
    at_p, shifted = reference.sinusoid(torch.tensor([p, p + k]), width)
    torch.testing.assert_close(rotation @ at_p, shifted)
    torch.testing.assert_close(
        Sinusoidal(width).embed(torch.tensor(p + k)).double(), rotation @ at_p, rtol=1e-5, atol=1e-5
    )


def test_sinusoidal_float64_precision() -> None:
    actual = Sinusoidal(8)(torch.zeros(1, 50, 8, dtype=torch.float64))[0]
    torch.testing.assert_close(actual, reference.sinusoid(torch.arange(50), 8), rtol=1e-12, atol=1e-12)


def test_distant_positions_keep_their_precision() -> None:
    distant = torch.tensor([1_000_003])
    torch.testing.assert_close(
        Sinusoidal(8).embed(distant).double(), reference.sinusoid(distant, 8), rtol=1e-6, atol=1e-6
    )
    rotated = Rotary(8).transform(torch.ones(1, 1, 1, 8), 1_000_003)
    torch.testing.assert_close(rotated, reference.rotary(torch.ones(1, 1, 1, 8), distant), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("build", [lambda c: Sinusoidal(6, combine=c), lambda c: Learned(20, 6, combine=c)])
def test_embedding_positions_are_added_or_concatenated(build) -> None:
    x = torch.randn(2, 5, 6)
    positions = build("add").embed(torch.arange(5))
    assert build("add")(x).shape == (2, 5, 6)
    concatenated = build("concatenate")(x)
    assert concatenated.shape == (2, 5, 12)
    assert torch.equal(concatenated[..., :6], x)
    module = build("add")
    assert torch.equal(module(x, offset=3), x + module.embed(torch.arange(3, 8)).to(x.dtype))
    assert positions.shape == (5, 6)


def test_position_beyond_learned_positions_raises() -> None:
    with pytest.raises(ValueError, match=r"position 4 is beyond the 4 positions"):
        Learned(4, 6)(torch.zeros(1, 5, 6))


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 10_000))
def test_rotary_and_alibi_scores_depend_only_on_distance(shift: int, other_shift: int, seed: int) -> None:
    torch.manual_seed(seed)
    q, k = torch.randn(1, 2, 1, 8, dtype=torch.float64), torch.randn(1, 2, 1, 8, dtype=torch.float64)
    rotary, alibi = Rotary(8), ALiBi(2)

    def score(query_positions: int, key_positions: int) -> torch.Tensor:
        return (rotary.transform(q, query_positions) * rotary.transform(k, key_positions)).sum(-1)

    torch.testing.assert_close(score(shift + 3, shift), score(other_shift + 3, other_shift))
    first_range, second_range = torch.arange(shift, shift + 4), torch.arange(other_shift, other_shift + 4)
    nearby, distant = (
        alibi.bias(q, first_range, first_range, 1.0, None),
        alibi.bias(q, second_range, second_range, 1.0, None),
    )
    assert nearby is not None and distant is not None and torch.equal(nearby, distant)  # noqa: PT018


def test_rotary_equals_the_paper_and_preserves_norms() -> None:
    x = torch.randn(2, 3, 7, 6, dtype=torch.float64)
    rotated = Rotary(6).transform(x, 4)
    torch.testing.assert_close(rotated, reference.rotary(x, torch.arange(4, 11)))
    torch.testing.assert_close(rotated.norm(dim=-1), x.norm(dim=-1))
    partly_rotated = Rotary(6, rotary_width=4).transform(x, 4)
    assert torch.equal(partly_rotated[..., 4:], x[..., 4:])


def test_alibi_slopes_equal_the_paper() -> None:
    assert ALiBi(8).slopes == [2**-i for i in range(1, 9)]
    assert ALiBi(4).slopes == [2**-2, 2**-4, 2**-6, 2**-8]
    twelve = ALiBi(12).slopes
    assert twelve[:8] == ALiBi(8).slopes
    assert twelve[8:] == pytest.approx([2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5])


@pytest.mark.parametrize("backend", ["auto", "sdpa", "dense", "tiled"])
def test_alibi_in_attention_equals_the_reference(backend: str) -> None:
    q, k, v = (torch.randn(2, 4, 6, 8, dtype=torch.float64) for _ in range(3))
    bias = reference.alibi(torch.arange(6), torch.arange(6), torch.tensor(ALiBi(4).slopes, dtype=torch.float64))
    expected, _ = reference.attend(q, k, v, bias=bias)
    torch.testing.assert_close(attend(q, k, v, position="alibi", backend=backend), expected)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_t5_buckets_equal_the_reference(bidirectional: bool) -> None:
    t5 = T5(1, buckets=16, max_distance=40, bidirectional=bidirectional)
    distances = torch.arange(-90, 91)
    expected = [reference.t5_bucket(int(d), 16, 40, bidirectional) for d in distances]
    assert t5.bucket(distances).tolist() == expected


@pytest.mark.parametrize("backend", ["auto", "dense", "tiled", "sdpa"])
def test_t5_in_attention_equals_the_reference(backend: str) -> None:
    q, k, v = (torch.randn(2, 4, 6, 8, dtype=torch.float64) for _ in range(3))
    t5 = T5(4).double()
    table = [[t5.table[:, reference.t5_bucket(j - i, 32, 128, True)] for j in range(6)] for i in range(6)]
    bias = torch.stack([torch.stack(row) for row in table]).permute(2, 0, 1)
    expected, _ = reference.attend(q, k, v, bias=bias)
    with torch.set_grad_enabled(backend != "sdpa"):
        output = attend(q, k, v, position=t5, backend=backend)
    torch.testing.assert_close(output, expected)
    if backend != "sdpa":
        direction = torch.randn_like(output)
        actual, expected_gradient = (torch.autograd.grad(x, [t5.table], direction)[0] for x in (output, expected))
        torch.testing.assert_close(actual, expected_gradient)


@pytest.mark.parametrize("backend", ["auto", "dense", "tiled"])
def test_shaw_in_attention_equals_the_reference(backend: str) -> None:
    q, k, v = (torch.randn(2, 4, 6, 8, dtype=torch.float64) for _ in range(3))
    shaw = Shaw(8, max_distance=2, value_width=8).double()
    positions = torch.arange(6)
    bias = reference.shaw_scores(q, positions, positions, shaw.keys) / 8**0.5
    expected, w = reference.attend(q, k, v, bias=bias)
    assert shaw.value_table is not None
    expected = expected + reference.shaw_values(w, positions, positions, shaw.value_table)
    output = attend(q, k, v, position=shaw, backend=backend)
    torch.testing.assert_close(output, expected)
    direction = torch.randn_like(output)
    for actual, expected_gradient in zip(
        *(torch.autograd.grad(x, list(shaw.parameters()), direction) for x in (output, expected)), strict=True
    ):
        torch.testing.assert_close(actual, expected_gradient)


@pytest.mark.parametrize("name", ["rotary", "alibi", "shaw", "t5"])
def test_relative_positions_depend_on_distance_only(name: str) -> None:
    """The same keys further along give the same weights."""
    torch.manual_seed(0)
    attention = Attention(16, heads=4, position=name, extent="causal").double()
    x = torch.randn(1, 6, 16, dtype=torch.float64)
    weights_alone = attention(x, need_weights=True).weights
    prefix = torch.randn(1, 3, 16, dtype=torch.float64)
    mask = torch.ones(9, 9, dtype=torch.bool)
    mask[:, :3] = False
    shifted = attention(torch.cat([prefix, x], 1), mask=mask, need_weights=True).weights
    torch.testing.assert_close(shifted[:, :, 3:, 3:], weights_alone)


@pytest.mark.parametrize(("position", "score"), [("rotary", "additive"), ("shaw", "cosine"), ("rotary", "bilinear")])
def test_incompatible_position_and_score_raise(position: str, score: str) -> None:
    with pytest.raises(ValueError, match=f"position: {position} has no meaning with the {score} score"):
        Attention(8, heads=2, score=score, position=position)(torch.zeros(1, 3, 8))


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
def test_position_embeddings_in_attention_raise(name: str) -> None:
    with pytest.raises(ValueError, match="goes into the embeddings"):
        Attention(8, position=name)


def test_weights_of_selected_heads_with_positions() -> None:
    q = torch.randn(1, 8, 5, 4)
    all_weights = weights(q, q, position=ALiBi(8))
    torch.testing.assert_close(weights(q, q, position=ALiBi(8), heads=[5, 0]), all_weights[:, [5, 0]])
