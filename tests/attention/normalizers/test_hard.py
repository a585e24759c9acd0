"""Hard attention: what is drawn, and that learning from it is right."""

import itertools

import pytest
import torch

from regard.attention import Attention, Draw, Hard, Reinforce, attend


def test_draws_follow_the_softmax() -> None:
    """Pearson's chi-squared over 40,000 draws, at a level that a right sampler fails once in 10,000 seeds."""
    torch.manual_seed(0)
    scores = torch.tensor([2.0, 0.5, -1.0, 0.0, 1.2])
    draws = 40_000
    for estimator in ("reinforce", "gumbel"):
        w, _ = Hard(estimator).weights(scores.expand(1, 1, draws, 5), None)
        assert ((w == 1).sum(-1) == 1).all()
        counts = w.detach().sum((0, 1, 2))
        expected = torch.softmax(scores, -1) * draws
        statistic = ((counts - expected) ** 2 / expected).sum().item()
        assert statistic < 23.51  # chi-squared, 4 degrees of freedom, p = 0.0001


def test_masked_positions_are_never_drawn() -> None:
    torch.manual_seed(0)
    allowed = torch.tensor([True, False, True, False])
    scores = torch.tensor([-200.0, 300.0, -201.0, 300.0])
    for estimator in ("reinforce", "gumbel"):
        w, _ = Hard(estimator).weights(scores.expand(1, 1, 1000, 4), allowed)
        assert (w[..., ~allowed] == 0).all()
        assert (w.sum(-1) == 1).all()


def test_evaluation_takes_the_argmax() -> None:
    scores = torch.tensor([[0.0, 3.0, 1.0]])[None, None]
    w, draw = Hard().eval().weights(scores, None)
    assert w.tolist() == [[[[0, 1, 0]]]]
    assert draw is None


def reward_at(position: torch.Tensor) -> torch.Tensor:
    return torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)[position]


def test_reinforce_is_unbiased_by_exact_enumeration() -> None:
    """The expected gradient of the loss, over all draws of two rows, is the gradient of the expected objective."""
    torch.manual_seed(0)
    scores = torch.randn(1, 1, 2, 3, dtype=torch.float64, requires_grad=True)
    log_p = torch.log_softmax(scores, -1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    reinforce = Reinforce(momentum=0.5, entropy_weight=0.1).eval()
    reinforce.baseline.fill_(0.7)  # any baseline that does not know the draw

    expected_gradient = torch.zeros_like(scores)
    objective = torch.zeros((), dtype=torch.float64)
    for first, second in itertools.product(range(3), repeat=2):
        position = torch.tensor([[[first, second]]])
        chosen = log_p.gather(-1, position[..., None]).squeeze(-1)
        reward = reward_at(position).sum()  # of the whole, not a sum of parts that know each other
        probability = chosen.sum().exp()
        loss = reinforce(reward[None], [Draw(position, chosen, entropy)])
        (gradient,) = torch.autograd.grad(loss, scores, retain_graph=True)
        expected_gradient += probability.detach() * gradient
        objective = objective + probability * reward
    (expected,) = torch.autograd.grad(-(objective + 0.1 * entropy.sum()), scores)
    torch.testing.assert_close(expected_gradient, expected)


def test_draw_agrees_with_output_and_weights() -> None:
    torch.manual_seed(0)
    q, k = torch.randn(3, 2, 4, 8, requires_grad=True), torch.randn(3, 2, 5, 8, requires_grad=True)
    v = torch.randn(3, 2, 5, 6, requires_grad=True)
    for backend in ("dense", "tiled"):
        for extent in ("global", "causal"):
            hard_attended = attend(q, k, v, normalize="hard", extent=extent, need_weights=True, backend=backend)
            assert hard_attended.draw is not None
            assert hard_attended.weights is not None
            position, log_prob, entropy = hard_attended.draw
            assert torch.equal(hard_attended.weights.argmax(-1), position)
            torch.testing.assert_close(hard_attended.output, v.gather(2, position[..., None].expand(-1, -1, -1, 6)))
            soft = attend(q, k, v, extent=extent, need_weights=True).weights
            assert soft is not None
            torch.testing.assert_close(log_prob, soft.gather(-1, position[..., None]).squeeze(-1).log())
            torch.testing.assert_close(entropy, torch.special.entr(soft).sum(-1))
            assert all(g is not None for g in torch.autograd.grad(log_prob.sum(), [q, k], retain_graph=True))
            (output_gradient,) = torch.autograd.grad(hard_attended.output.sum(), [q], allow_unused=True)
            assert output_gradient is None or (output_gradient == 0).all(), "the weights themselves carry no gradient"


def test_straight_through_gumbel_has_the_gradient_of_the_relaxed_weights() -> None:
    torch.manual_seed(0)
    scores = torch.randn(1, 1, 50, 6, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(5)
    w, _ = Hard("gumbel", temperature=0.7).weights(scores, None)
    direction = torch.randn_like(w)
    (actual,) = torch.autograd.grad(w, scores, direction)
    torch.manual_seed(5)
    noise = -torch.empty_like(scores).exponential_().log()
    (expected,) = torch.autograd.grad(torch.softmax((scores + noise) / 0.7, -1), scores, direction)
    torch.testing.assert_close(actual, expected)
    assert set(w.detach().round(decimals=12).unique().tolist()) == {0.0, 1.0}


def test_reinforce_with_gradients_requires_need_weights() -> None:
    q = torch.randn(1, 1, 2, 4, requires_grad=True)
    with pytest.raises(ValueError, match="need_weights=True"):
        attend(q, q, q, normalize="hard")
    with torch.no_grad():
        attend(q, q, q, normalize="hard")


@pytest.mark.parametrize("estimator", ["reinforce", "gumbel"])
def test_hard_attention_learns_the_target_position(estimator: str) -> None:
    """The answer stands at a position that only the query tells; both estimators find it."""
    torch.manual_seed(0)
    attention = Attention(8, project="qk", head_width=8, value_width=8, normalize=Hard(estimator))  # type: ignore[arg-type]
    reinforce = Reinforce(entropy_weight=0.02)
    optimizer = torch.optim.Adam(attention.parameters(), 0.02)

    def sample(size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        keys = torch.randn(size, 5, 8)
        target = torch.randint(5, (size,))
        query = keys[torch.arange(size), target].roll(3, -1)[:, None]
        return query, keys, target

    for _ in range(250):
        query, keys, target = sample(64)
        attended = attention(query, keys, need_weights=True)
        target_value = keys[torch.arange(64), target]
        reward = -(attended.output[:, 0] - target_value).square().mean(-1)
        loss = -reward.mean()
        if estimator == "reinforce":
            loss = loss + reinforce(reward, [attended.draw])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    query, keys, target = sample(500)
    attention.eval()
    attended_position = attention(query, keys, need_weights=True).weights.argmax(-1)[:, 0, 0]
    assert (attended_position == target).float().mean() > 0.8


def test_baseline_is_updated_in_training_only_and_saved() -> None:
    reinforce = Reinforce(momentum=0.9)
    draw = Draw(torch.zeros(2, 1, 1, dtype=torch.long), torch.zeros(2, 1, 1), torch.zeros(2, 1, 1))
    reinforce(torch.tensor([1.0, 3.0]), [draw])
    assert reinforce.baseline.item() == pytest.approx(0.2)
    reinforce.eval()
    reinforce(torch.tensor([1.0, 3.0]), [draw])
    assert reinforce.state_dict()["baseline"].item() == pytest.approx(0.2)


def test_baseline_reduces_the_variance() -> None:
    torch.manual_seed(0)
    scores = torch.zeros(1, 1, 1, 3, dtype=torch.float64, requires_grad=True)

    def sampled_gradients(baseline: float) -> torch.Tensor:
        reinforce = Reinforce(entropy_weight=0.0).eval()
        reinforce.baseline.fill_(baseline)
        gradients = []
        for _ in range(300):
            _, draw = Hard().weights(scores, None)
            assert draw is not None
            loss = reinforce((reward_at(draw.position) + 10).flatten(), [draw])
            gradients.append(torch.autograd.grad(loss, scores)[0].flatten())
        return torch.stack(gradients)

    assert sampled_gradients(10.0).var(0).sum() < 0.1 * sampled_gradients(0.0).var(0).sum()


def test_equal_scores_are_drawn_evenly_in_half_precision() -> None:
    torch.manual_seed(0)
    w, _ = Hard("gumbel").weights(torch.full((1, 1, 40_000, 2), 100.0, dtype=torch.bfloat16), None)
    assert w[..., 0].detach().float().mean().item() == pytest.approx(0.5, abs=0.015)
