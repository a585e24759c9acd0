"""The specification itself: against numbers worked out by hand, against papers, and by gradcheck."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from regard.attention import reference


def random_f64(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).requires_grad_()


ALLOWED = torch.tensor([[True, True, False, True], [True, False, False, True], [False, False, False, False]])


def test_scores_equal_hand_calculations() -> None:
    q, k = torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 2.0], [0.0, -1.0]])
    assert reference.dot(q, k).tolist() == [[11.0, -4.0]]
    assert reference.scaled_dot(q, k).tolist() == [[pytest.approx(11 / math.sqrt(2)), pytest.approx(-4 / math.sqrt(2))]]
    assert reference.cosine(q, k).tolist() == [[pytest.approx(11 / (5 * math.sqrt(5))), pytest.approx(-4 / 5)]]
    W = torch.tensor([[1.0, 0.0], [2.0, 1.0]])  # q'W = [11, 4]
    assert reference.bilinear(q, k, W).tolist() == [[19.0, -4.0]]
    identity, v = torch.eye(2), torch.tensor([1.0, 10.0])
    additive = reference.additive(q, k, identity, identity, torch.tensor([0.0, -5.0]), v)
    expected = [math.tanh(4) + 10 * math.tanh(1), math.tanh(3) + 10 * math.tanh(-2)]
    assert additive[0].tolist() == pytest.approx(expected)


def test_sparsemax_equals_hand_calculations() -> None:
    """Two scores: the nearest point of the simplex moves linearly until one weight is zero."""
    all_allowed = torch.tensor([True, True])
    assert reference.sparsemax(torch.tensor([0.3, 0.1]), all_allowed).tolist() == pytest.approx([0.6, 0.4])
    assert reference.sparsemax(torch.tensor([2.0, 0.5]), all_allowed).tolist() == [1.0, 0.0]
    assert reference.sparsemax(torch.tensor([5.0, 0.5]), torch.tensor([False, True])).tolist() == [0.0, 1.0]


def test_entmax_at_2_is_sparsemax_and_at_1_5_solves_its_equation() -> None:
    scores, allowed = random_f64(5, 7), torch.ones(5, 7, dtype=torch.bool)
    torch.testing.assert_close(reference.entmax(scores, allowed, 2.0), reference.sparsemax(scores, allowed))
    p = reference.entmax(scores, allowed, 1.5)
    torch.testing.assert_close(p.sum(-1), torch.ones(5, dtype=torch.float64))
    # On the support sqrt(p) = s / 2 - tau: the differences of sqrt(p) are half those of the scores.
    for row, s in zip(p, scores, strict=True):
        support = row > 1e-12
        gap = row[support].sqrt() - s[support] / 2
        torch.testing.assert_close(gap, gap[:1].expand_as(gap))


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 3.0])
def test_entmax_solves_its_optimization_problem(alpha: float) -> None:
    """No other distribution has a larger p·s + H_alpha(p) (Peters et al. 2019, equation 5)."""
    torch.manual_seed(0)
    scores = torch.randn(6, dtype=torch.float64)

    def objective(p: torch.Tensor) -> torch.Tensor:
        return p @ scores + (p - p**alpha).sum(-1) / (alpha * (alpha - 1))

    optimum = reference.entmax(scores, torch.ones(6, dtype=torch.bool), alpha)
    candidates = torch.distributions.Dirichlet(torch.full((6,), 0.5, dtype=torch.float64)).sample((2000,))
    nearby = 0.99 * optimum + 0.01 * candidates
    assert (objective(candidates) <= objective(optimum) + 1e-12).all()
    assert (objective(nearby) <= objective(optimum) + 1e-12).all()


def test_extents_as_drawn() -> None:
    def as_text(allowed: torch.Tensor) -> list[str]:
        return ["".join("x" if is_allowed else "." for is_allowed in row) for row in allowed]

    positions = torch.arange(5)
    assert as_text(reference.causal(positions, positions)) == ["x....", "xx...", "xxx..", "xxxx.", "xxxxx"]
    assert as_text(reference.window(positions, positions, 1)) == ["xx...", "xxx..", ".xxx.", "..xxx", "...xx"]
    assert as_text(reference.window(positions, positions, 1, True)) == ["x....", "xx...", ".xx..", "..xx.", "...xx"]
    assert as_text(reference.window(positions, positions, 1, False, 1)) == ["xxxxx", "xxx..", "xxxx.", "x.xxx", "x..xx"]
    assert as_text(reference.window(positions, positions, 1, True, 2)) == ["x....", "xx...", "xxx..", "xxxx.", "xx.xx"]
    assert as_text(reference.local_m(torch.arange(3, 7), positions, 1)) == ["..xxx", "...xx", "....x", "....."]
    center = torch.tensor([1.5, 4.2])
    assert as_text(reference.local_p(center, positions, 1)) == [".xx..", "....x"]


def test_gaussian_equals_a_hand_calculation() -> None:
    actual = reference.gaussian(torch.tensor([2.0]), torch.arange(5), 2.0)  # sigma = 1
    assert actual[0].tolist() == pytest.approx([math.exp(-2), math.exp(-0.5), 1, math.exp(-0.5), math.exp(-2)])


def test_gradients_of_the_scores() -> None:
    q, k = random_f64(2, 3, 4), random_f64(2, 5, 4, seed=1)
    for score in (reference.dot, reference.scaled_dot, reference.cosine):
        assert gradcheck(score, (q, k))
    assert gradcheck(reference.bilinear, (q, k, random_f64(4, 4, seed=2)))
    parameters = (
        random_f64(6, 4, seed=2),
        random_f64(6, 4, seed=3),
        random_f64(6, seed=4),
        random_f64(6, seed=5),
    )
    assert gradcheck(reference.additive, (q, k, *parameters))


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "sigmoid", "none"])
def test_gradients_of_the_normalizers(name: str) -> None:
    normalize = getattr(reference, name)
    assert gradcheck(lambda s: normalize(s, ALLOWED), (random_f64(2, 3, 4),))


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0, 2.5])
def test_gradients_of_entmax_and_of_its_alpha(alpha: float) -> None:
    learned = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda s, a: reference.entmax(s, ALLOWED, a), (random_f64(2, 3, 4), learned))


def test_gradients_of_local_p() -> None:
    q, w, v = random_f64(2, 3, 4), random_f64(6, 4, seed=1), random_f64(6, seed=2)
    positions = torch.arange(5)

    def local(q: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return reference.gaussian(reference.predicted_center(q, w, v, torch.full((1, 1), 5.0)), positions, 2.0)

    assert gradcheck(local, (q, w, v))


def test_gradients_of_attend() -> None:
    q, k, v = random_f64(1, 2, 3, 4), random_f64(1, 1, 4, 4, seed=1), random_f64(1, 1, 4, 2, seed=2)
    for normalize in (reference.softmax, reference.sparsemax, reference.sigmoid):
        assert gradcheck(lambda q, k, v: reference.attend(q, k, v, allowed=ALLOWED, normalize=normalize)[0], (q, k, v))


def test_attend_equals_torch_sdpa() -> None:
    q, k, v = random_f64(2, 4, 3, 8), random_f64(2, 2, 5, 8, seed=1), random_f64(2, 2, 5, 6, seed=2)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    torch.testing.assert_close(reference.attend(q, k, v)[0], expected)


def test_t5_buckets_equal_published_values() -> None:
    """32 buckets to 128, two-sided: 8 exact on each side, then wider and wider; checked values."""
    bidirectional = [
        reference.t5_bucket(d, 32, 128, True) for d in (0, -1, -7, -8, -15, -16, -128, -1000, 1, 7, 8, 128)
    ]
    assert bidirectional == [0, 1, 7, 8, 9, 10, 15, 15, 17, 23, 24, 31]
    one_sided = [reference.t5_bucket(d, 32, 128, False) for d in (5, 0, -1, -15, -16, -127, -500)]
    assert one_sided == [0, 0, 1, 15, 16, 31, 31]
