"""Words copied from the source: the pointer-generator of See et al. 2017 (arXiv:1704.04368, equation 9).

P(w) = p_gen P_vocabulary(w) + (1 - p_gen) * the sum of the weights on the places that have w. Source and target have
one vocabulary of subwords in which nothing is unknown, so that no words beyond it are needed.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, logsigmoid

from regard.models.outputs import Copied, State

SMALLEST = 1e-9  # a share of zero, as its logarithm is taken


def mixed(logits: Tensor, copied: Copied, tokens: Tensor) -> Tensor:
    """Log-probabilities [..., V] of what is said or copied; logits [..., V], tokens [..., Ts] of the places."""
    shares = torch.zeros_like(logits).scatter_add(-1, tokens.expand_as(copied.weights), copied.weights.to(logits.dtype))
    said = log_softmax(logits, -1) + logsigmoid(copied.own)[..., None]
    return torch.logaddexp(said, shares.clamp_min(SMALLEST).log() + logsigmoid(-copied.own)[..., None])


def copying_loss(
    logits: Tensor, copied: Copied, tokens: Tensor, targets: Tensor, *, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The smoothed loss and -log P of each target [N]; logits [N, V], weights and tokens [N, Ts].

    Smoothing asks the decoder's own words alone to be less sure: a copy is right or wrong.
    """
    logs = log_softmax(logits.float(), -1)
    own = copied.own.float()
    share = (copied.weights.float() * (tokens == targets[:, None])).sum(-1)
    said = logs.gather(1, targets[:, None])[:, 0] + logsigmoid(own)
    per_token = -torch.logaddexp(said, share.clamp_min(SMALLEST).log() + logsigmoid(-own))
    return (1 - smoothing) * per_token - smoothing * logs.mean(-1), per_token


@dataclass(frozen=True)
class CopyingState:
    """A decoder's state, and the words that it may copy."""

    state: Any
    tokens: Tensor  # [B, Ts]

    def select(self, index: Tensor, *, same_sources: bool = False) -> "CopyingState":
        """The batch entries of this index."""
        state: State = self.state.select(index, same_sources=same_sources)
        return replace(self, state=state, tokens=self.tokens if same_sources else self.tokens.index_select(0, index))
