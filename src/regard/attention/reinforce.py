"""REINFORCE for hard attention: a loss from the reward of sampled positions.

Williams 1992; Xu et al. 2015 (arXiv:1502.03044, section 4.1): the reward times the gradient of the draw's
log-probability, a moving average of past rewards as baseline, and an entropy bonus for exploration. Their last trick,
to attend softly half of the time, is left to the caller.
"""

import torch
from torch import Tensor, nn

from regard.attention.normalizers.base import Draw
from regard.errors import RegardError


class Reinforce(nn.Module):
    """Turns a reward and the draws into a loss.

        attended = attention(query, memory, need_weights=True)     # normalize=Hard("reinforce")
        log_likelihood = ...                                       # [B], from attended.output
        loss = -log_likelihood.mean() + reinforce(log_likelihood.detach(), [attended.draw])

    In training mode each call moves the baseline, `momentum` * baseline + (1 - momentum) * mean reward, but only
    after using it: a baseline that depended on the current reward would bias the gradient. It starts at zero and is a
    buffer: saved and restored with the model.
    """

    baseline: Tensor

    def __init__(self, *, momentum: float = 0.9, reward_weight: float = 1.0, entropy_weight: float = 0.01) -> None:
        super().__init__()
        if not 0 <= momentum < 1:
            raise RegardError(f"momentum: {momentum} is not possible; it must be at least 0 and below 1.")
        self.momentum, self.reward_weight, self.entropy_weight = momentum, reward_weight, entropy_weight
        self.register_buffer("baseline", torch.zeros(()))

    def forward(self, reward: Tensor, draws: list[Draw]) -> Tensor:
        """reward [B], or any shape that broadcasts against the draws' [B, H, Tq] from the left -> a scalar loss.

        The loss is the mean over the batch of -(reward - baseline) sum log_prob - entropy_weight * sum entropy.
        """
        if not isinstance(reward, Tensor) or not reward.is_floating_point():
            raise RegardError("reward: expected a floating-point tensor, one number for each example of the batch.")
        if isinstance(draws, Draw):
            raise RegardError("draws: expected a list of draws; for one, pass [draw].")
        if not draws:
            raise RegardError("draws: the list is empty; pass the `draw` of each attention that was sampled.")
        if any(draw is None for draw in draws):
            raise RegardError(
                "draws: nothing was drawn; use Hard('reinforce') in training mode with need_weights=True."
            )
        reward = reward.detach()
        advantage = self.reward_weight * (reward - self.baseline)
        loss = reward.new_zeros(())
        for draw in draws:
            weighted_advantage = advantage.reshape(advantage.shape + (1,) * (draw.log_prob.ndim - advantage.ndim))
            terms = weighted_advantage * draw.log_prob + self.entropy_weight * draw.entropy
            loss = loss - terms.sum() / len(draw.log_prob)
        if self.training:
            self.baseline.lerp_(reward.mean().to(self.baseline), 1 - self.momentum)
        return loss
