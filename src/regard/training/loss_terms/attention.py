"""Losses on cross-attention: coverage, doubly stochastic attention, guided alignment."""

import torch
from torch import Tensor

from regard.alignment.alignment_head import AlignmentHead
from regard.training.loss import ForwardPass, Loss
from regard.training.loss_terms.base import LossTerm

SMALLEST_WEIGHT = 1e-6  # added before a logarithm is taken


def _last_layer(given: ForwardPass) -> Tensor | None:
    """The weights [B, Tt, Ts] of the last layer, the mean of its heads, zero at padded steps."""
    if not given.decoded.cross_attention:
        return None
    present = torch.cat([given.present] * given.passes)
    return given.decoded.cross_attention[-1].mean(1).float() * present[..., None]


class DoublyStochastic(LossTerm):
    """Every source position is to get a total weight of 1 (Xu et al. 2015, arXiv:1502.03044, equation 14)."""

    needs_weights = True

    def __call__(self, given: ForwardPass, loss: Loss) -> Tensor | None:
        weights = _last_layer(given)
        if weights is None:
            return None
        missing = (1 - weights.sum(1)) * given.encoded.mask
        return self.weight * missing.square().sum() / given.passes


class Coverage(LossTerm):
    """No source position is to be attended to twice (See et al. 2017, arXiv:1704.04368, equation 12)."""

    needs_weights = True

    def __call__(self, given: ForwardPass, loss: Loss) -> Tensor | None:
        weights = _last_layer(given)
        if weights is None:
            return None
        before = weights.cumsum(1) - weights
        return self.weight * torch.minimum(weights, before).sum() / given.passes


class GuidedAlignment(LossTerm):
    """Cross-entropy between given word alignments and one head's attention (Chen et al. 2016, arXiv:1607.01628; one
    head of a Transformer: Garg et al. 2019, arXiv:1909.02074)."""

    needs_weights = True

    def __init__(self, weight: float, head: AlignmentHead) -> None:
        super().__init__(weight)
        self.head = head

    def __call__(self, given: ForwardPass, loss: Loss) -> Tensor | None:
        targets = given.batch.alignment
        if targets is None:
            return None
        targets = torch.cat([targets / given.passes] * given.passes)
        weights = given.decoded.cross_attention[self.head.layer][:, self.head.head or 0].float()
        if self.head.shifted:
            weights, targets = weights[:, 1:], targets[:, :-1]  # the last row is the end's, which has no alignment
        return -self.weight * (targets * (weights + SMALLEST_WEIGHT).log()).sum()
