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

    def __call__(self, forward: ForwardPass, loss: Loss) -> Tensor | None:
        if not forward.decoded.draws or loss.per_token is None:
            return None
        mask = forward.target_mask
        likelihood = loss.per_token.new_zeros(mask.shape).masked_scatter(mask, -loss.per_token)
        reward = likelihood.sum(1) / mask.sum(1).clamp_min(1)
        draws = []
        step = 0
        for draw in forward.decoded.draws:  # log_prob [B, H, steps]
            steps = draw.log_prob.shape[-1]
            counted = mask[:, None, step : step + steps].to(draw.log_prob.dtype)
            draws.append(Draw(draw.position, draw.log_prob * counted, draw.entropy * counted))
            step += steps
        term: Tensor = self.reinforce(reward, draws) * len(mask)
        return self.weight * term
