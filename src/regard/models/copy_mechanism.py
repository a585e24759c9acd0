"""Copy attention: the pointer-generator of See et al. 2017 (arXiv:1704.04368, equation 9).

P(w) = p_gen P_vocabulary(w) + (1 - p_gen) * the sum of the attention weights on the source positions that hold w.
Source and target share one vocabulary of subwords without unknown words, so the paper's extended vocabulary is not
needed.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, logsigmoid

from regard.models.outputs import CopyDistribution, State

MIN_PROBABILITY = 1e-9  # of a copy, because its logarithm is taken


def mix_copy_distribution(logits: Tensor, copy: CopyDistribution, tokens: Tensor) -> Tensor:
    """Log-probabilities [..., V] of generating or copying; logits [..., V], source tokens [..., Ts]."""
    copied = torch.zeros_like(logits).scatter_add(-1, tokens.expand_as(copy.weights), copy.weights.to(logits.dtype))
    generated = log_softmax(logits, -1) + logsigmoid(copy.generate)[..., None]
    return torch.logaddexp(generated, copied.clamp_min(MIN_PROBABILITY).log() + logsigmoid(-copy.generate)[..., None])


def copy_cross_entropy(
    logits: Tensor, copy: CopyDistribution, tokens: Tensor, targets: Tensor, *, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The smoothed loss and -log P of each target [N]; logits [N, V], weights and tokens [N, Ts].

    Label smoothing applies to the generated distribution only: a copy is right or wrong.
    """
    logs = log_softmax(logits.float(), -1)
    generate = copy.generate.float()
    copied = (copy.weights.float() * (tokens == targets[:, None])).sum(-1)
    generated = logs.gather(1, targets[:, None])[:, 0] + logsigmoid(generate)
    per_token = -torch.logaddexp(generated, copied.clamp_min(MIN_PROBABILITY).log() + logsigmoid(-generate))
    return (1 - smoothing) * per_token - smoothing * logs.mean(-1), per_token


@dataclass(frozen=True)
class CopyState:
    """A decoder's state, and the source tokens that it can copy."""

    state: Any
    tokens: Tensor  # [B, Ts]

    def select(self, index: Tensor, *, same_sources: bool = False) -> "CopyState":
        """The batch entries of this index."""
        state: State = self.state.select(index, same_sources=same_sources)
        return replace(self, state=state, tokens=self.tokens if same_sources else self.tokens.index_select(0, index))
