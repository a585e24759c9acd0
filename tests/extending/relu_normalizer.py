"""A normalizer: scores below zero get no weight."""

import torch
from torch import Tensor

from regard.attention.normalizers import NORMALIZERS
from regard.attention.normalizers.base import Draw, Normalizer, mask_weights


@NORMALIZERS.register("relu")
class ReLU(Normalizer):
    """max(s, 0), divided by the number of keys."""

    formula = "max(sⱼ, 0) / n"
    summary = "scores below zero get no weight"
    paper = "Wortsman et al. 2023, arXiv:2309.08586"
    use = 'attend(q, k, v, normalize="relu")'

    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        return mask_weights(scores.relu() / scores.shape[-1], allowed), None

    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return torch.where(allowed, scores.clamp_min(0), 0) / scores.shape[-1]
