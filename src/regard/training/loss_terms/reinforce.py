"""REINFORCE for hard attention that samples positions (Williams 1992; Xu et al. 2015, section 4.1)."""

from torch import Tensor

from regard.attention import Draw, Reinforce
from regard.training.loss import ForwardPass, Loss
from regard.training.loss_terms.base import LossTerm


class HardAttention(LossTerm):
    """The reward is each sentence's mean log-likelihood; padded steps do not count."""

    def __init__(self, reinforce: Reinforce) -> None:
        """reinforce: has the moving baseline of the reward."""
        super().__init__(1.0)
        self.reinforce = reinforce

    def __call__(self, given: ForwardPass, loss: Loss) -> Tensor | None:
        if not given.decoded.draws or loss.per_token is None:
            return None
        present = given.present
        likelihood = loss.per_token.new_zeros(present.shape).masked_scatter(present, -loss.per_token)
        reward = likelihood.sum(1) / present.sum(1).clamp_min(1)
        draws = []
        step = 0
        for draw in given.decoded.draws:  # log_prob [B, H, steps]
            steps = draw.log_prob.shape[-1]
            counts = present[:, None, step : step + steps].to(draw.log_prob.dtype)
            draws.append(Draw(draw.position, draw.log_prob * counts, draw.entropy * counts))
            step += steps
        term: Tensor = self.reinforce(reward, draws) * len(present)
        return self.weight * term
