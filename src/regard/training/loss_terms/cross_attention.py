"""Loss terms on cross-attention: coverage, doubly stochastic attention, guided alignment."""

import torch
from torch import Tensor

from regard.alignment.alignment_head import AlignmentHead
from regard.data.batch import Batch
from regard.training.loss import ForwardPass, Loss
from regard.training.loss_terms.base import LossTerm

EPSILON = 1e-6  # added before the logarithm


def _last_layer_weights(forward: ForwardPass) -> Tensor | None:
    """The attention weights [B, Tt, Ts] of the last layer, averaged over heads, zero at padded steps."""
    if not forward.decoded.cross_attention:
        return None
    mask = torch.cat([forward.target_mask] * forward.passes)
    return forward.decoded.cross_attention[-1].mean(1).float() * mask[..., None]


class DoublyStochastic(LossTerm):
    """Penalizes source positions whose weights do not sum to 1 (Xu et al. 2015, arXiv:1502.03044, equation 14)."""

    needs_weights = True

    def __call__(self, forward: ForwardPass, loss: Loss) -> Tensor | None:
        weights = _last_layer_weights(forward)
        if weights is None:
            return None
        missing = (1 - weights.sum(1)) * forward.encoded.mask
        return self.weight * missing.square().sum() / forward.passes


class Coverage(LossTerm):
    """Penalizes repeated attention to a source position (See et al. 2017, arXiv:1704.04368, equation 12)."""

    needs_weights = True

    def __call__(self, forward: ForwardPass, loss: Loss) -> Tensor | None:
        weights = _last_layer_weights(forward)
        if weights is None:
            return None
        before = weights.cumsum(1) - weights
        return self.weight * torch.minimum(weights, before).sum() / forward.passes


class GuidedAlignment(LossTerm):
    """Cross-entropy between given word alignments and one head's attention (Chen et al. 2016, arXiv:1607.01628; one
    head of a Transformer: Garg et al. 2019, arXiv:1909.02074)."""

    needs_weights = True

    def __init__(self, weight: float, head: AlignmentHead) -> None:
        super().__init__(weight)
        self.head = head

    def applies_to(self, batch: Batch) -> bool:
        return batch.alignment is not None

    def __call__(self, forward: ForwardPass, loss: Loss) -> Tensor | None:
        targets = forward.batch.alignment
        if targets is None:
            return None
        targets = torch.cat([targets / forward.passes] * forward.passes)
        weights = forward.decoded.cross_attention[self.head.layer][:, self.head.head or 0].float()
        if self.head.shifted:
            weights, targets = weights[:, 1:], targets[:, :-1]  # the last row is the end token's: it has no alignment
        return -self.weight * (targets * (weights + EPSILON).log()).sum()
