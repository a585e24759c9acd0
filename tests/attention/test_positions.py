"""Positions in embeddings and positions inside attention."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import T5, ALiBi, Attention, Learned, Rotary, Shaw, Sinusoidal, attend, reference, weights


def test_sinusoids_are_the_papers() -> None:
    got = Sinusoidal(6)(torch.zeros(1, 50, 6))[0]
    torch.testing.assert_close(got.double(), reference.sinusoid(torch.arange(50), 6), rtol=1e-6, atol=1e-6)
    # position 1, first pair: sin 1, cos 1; second pair: 1 / 10000^(2/6)
    assert got[1, :4].tolist() == pytest.approx([0.841471, 0.540302, 0.046399, 0.998923], abs=1e-5)


@given(st.integers(0, 300), st.integers(0, 40), st.sampled_from([4, 6, 16]))
def test_the_sinusoid_of_p_plus_k_is_a_fixed_linear_map_of_that_of_p(p: int, k: int, width: int) -> None:
    """The map turns each pair by k w_i and does not know p."""
    turn = torch.zeros(width, width, dtype=torch.float64)
    for i in range(0, width, 2):
        angle = torch.tensor(k / 10000 ** (i / width), dtype=torch.float64)
        turn[i, i], turn[i, i + 1] = angle.cos(), angle.sin()  # sin(a + b) = sin a cos b + cos a sin b
        turn[i + 1, i], turn[i + 1, i + 1] = -angle.sin(), angle.cos()
    here, there = reference.sinusoid(torch.tensor([p, p + k]), width)
    torch.testing.assert_close(turn @ here, there)
    torch.testing.assert_close(Sinusoidal(width).embed(torch.tensor(p + k)).double(), turn @ here, rtol=1e-5, atol=1e-5)


def test_sinusoids_of_float64_are_float64() -> None:
    got = Sinusoidal(8)(torch.zeros(1, 50, 8, dtype=torch.float64))[0]
    torch.testing.assert_close(got, reference.sinusoid(torch.arange(50), 8), rtol=1e-12, atol=1e-12)


def test_far_sinusoids_keep_their_digits() -> None:
    far = torch.tensor([1_000_003])
    torch.testing.assert_close(Sinusoidal(8).embed(far).double(), reference.sinusoid(far, 8), rtol=1e-6, atol=1e-6)
    rotated = Rotary(8).transform(torch.ones(1, 1, 1, 8), 1_000_003)
    torch.testing.assert_close(rotated, reference.rotary(torch.ones(1, 1, 1, 8), far), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("make", [lambda c: Sinusoidal(6, combine=c), lambda c: Learned(20, 6, combine=c)])
def test_embedding_positions_are_added_or_concatenated(make) -> None:
    x = torch.randn(2, 5, 6)
    positions = make("add").embed(torch.arange(5))
    assert make("add")(x).shape == (2, 5, 6)
    joined = make("concatenate")(x)
    assert joined.shape == (2, 5, 12)
    assert torch.equal(joined[..., :6], x)
    module = make("add")
    assert torch.equal(module(x, offset=3), x + module.embed(torch.arange(3, 8)).to(x.dtype))
    assert positions.shape == (5, 6)


def test_learned_positions_end_with_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"position 4 is beyond the 4 positions"):
        Learned(4, 6)(torch.zeros(1, 5, 6))


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 10_000))
def test_rotary_and_alibi_scores_depend_only_on_distance(shift: int, other: int, seed: int) -> None:
    torch.manual_seed(seed)
    q, k = torch.randn(1, 2, 1, 8, dtype=torch.float64), torch.randn(1, 2, 1, 8, dtype=torch.float64)
    rotary, alibi = Rotary(8), ALiBi(2)

    def score(query_positions: int, key_positions: int) -> torch.Tensor:
        return (rotary.transform(q, query_positions) * rotary.transform(k, key_positions)).sum(-1)

    torch.testing.assert_close(score(shift + 3, shift), score(other + 3, other))
    here, there = torch.arange(shift, shift + 4), torch.arange(other, other + 4)
    near, far = alibi.bias(q, here, here, 1.0, None), alibi.bias(q, there, there, 1.0, None)
    assert near is not None and far is not None and torch.equal(near, far)  # noqa: PT018


def test_rotary_is_the_papers_and_turns_nothing_longer() -> None:
    x = torch.randn(2, 3, 7, 6, dtype=torch.float64)
    turned = Rotary(6).transform(x, 4)
    torch.testing.assert_close(turned, reference.rotary(x, torch.arange(4, 11)))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    half = Rotary(6, rotated=4).transform(x, 4)
    assert torch.equal(half[..., 4:], x[..., 4:])


def test_alibi_slopes_are_the_papers() -> None:
    assert ALiBi(8).slopes == [2**-i for i in range(1, 9)]
    assert ALiBi(4).slopes == [2**-2, 2**-4, 2**-6, 2**-8]
    twelve = ALiBi(12).slopes
    assert twelve[:8] == ALiBi(8).slopes
    assert twelve[8:] == pytest.approx([2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5])


@pytest.mark.parametrize("backend", ["auto", "sdpa", "dense", "tiled"])
def test_alibi_in_attention_is_the_papers(backend: str) -> None:
    q, k, v = (torch.randn(2, 4, 6, 8, dtype=torch.float64) for _ in range(3))
    bias = reference.alibi(torch.arange(6), torch.arange(6), torch.tensor(ALiBi(4).slopes, dtype=torch.float64))
    expected, _ = reference.attend(q, k, v, bias=bias)
    torch.testing.assert_close(attend(q, k, v, position="alibi", backend=backend), expected)


@pytest.mark.parametrize("two_sided", [True, False])
def test_t5_buckets_are_the_papers(two_sided: bool) -> None:
    t5 = T5(1, buckets=16, furthest=40, two_sided=two_sided)
    distances = torch.arange(-90, 91)
    expected = [reference.t5_bucket(int(d), 16, 40, two_sided) for d in distances]
    assert t5.bucket(distances).tolist() == expected


@pytest.mark.parametrize("backend", ["auto", "dense", "tiled", "sdpa"])
def test_t5_in_attention_adds_its_table(backend: str) -> None:
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
        ours, theirs = (torch.autograd.grad(x, [t5.table], direction)[0] for x in (output, expected))
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("backend", ["auto", "dense", "tiled"])
def test_shaw_in_attention_is_the_papers(backend: str) -> None:
    q, k, v = (torch.randn(2, 4, 6, 8, dtype=torch.float64) for _ in range(3))
    shaw = Shaw(8, clip=2, value_width=8).double()
    at = torch.arange(6)
    bias = reference.shaw_scores(q, at, at, shaw.keys) / 8**0.5
    expected, w = reference.attend(q, k, v, bias=bias)
    assert shaw.value_table is not None
    expected = expected + reference.shaw_values(w, at, at, shaw.value_table)
    output = attend(q, k, v, position=shaw, backend=backend)
    torch.testing.assert_close(output, expected)
    direction = torch.randn_like(output)
    for ours, theirs in zip(
        *(torch.autograd.grad(x, list(shaw.parameters()), direction) for x in (output, expected)), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", ["rotary", "alibi", "shaw", "t5"])
def test_positions_inside_attention_see_distance_only(name: str) -> None:
    """The same keys further along give the same weights."""
    torch.manual_seed(0)
    attention = Attention(16, heads=4, position=name, extent="causal").double()
    x = torch.randn(1, 6, 16, dtype=torch.float64)
    alone = attention(x, need_weights=True).weights
    before = torch.randn(1, 3, 16, dtype=torch.float64)
    mask = torch.ones(9, 9, dtype=torch.bool)
    mask[:, :3] = False
    later = attention(torch.cat([before, x], 1), mask=mask, need_weights=True).weights
    torch.testing.assert_close(later[:, :, 3:, 3:], alone)


@pytest.mark.parametrize(("position", "score"), [("rotary", "additive"), ("shaw", "cosine"), ("rotary", "bilinear")])
def test_positions_without_meaning_say_so(position: str, score: str) -> None:
    with pytest.raises(ValueError, match=f"position: {position} has no meaning with the {score} score"):
        Attention(8, heads=2, score=score, position=position)(torch.zeros(1, 3, 8))


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
def test_embedding_positions_are_sent_to_the_embeddings(name: str) -> None:
    with pytest.raises(ValueError, match="goes into the embeddings"):
        Attention(8, position=name)


def test_weights_with_positions_pick_the_right_heads() -> None:
    q = torch.randn(1, 8, 5, 4)
    whole = weights(q, q, position=ALiBi(8))
    torch.testing.assert_close(weights(q, q, position=ALiBi(8), heads=[5, 0]), whole[:, [5, 0]])
