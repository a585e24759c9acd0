"""Softmax: soft attention (Bahdanau et al. 2014, arXiv:1409.0473)."""

import torch
from torch import Tensor

from regard.attention import reference
from regard.attention.normalizers import NORMALIZERS
from regard.attention.normalizers.base import Draw, Normalizer, mask_scores, mask_weights


@NORMALIZERS.register("softmax", aliases=("soft",))
class Softmax(Normalizer):
    """exp(s_j) / sum exp(s): soft attention."""

    formula = "exp(sⱼ) / Σ exp(s)"
    summary = "soft attention: some weight everywhere"
    paper = "Bahdanau, Cho, Bengio 2014, arXiv:1409.0473"
    use = "attend(q, k, v)"
    order = 1
    is_softmax = True

    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        return mask_weights(torch.softmax(mask_scores(scores, allowed), -1), allowed), None

    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return reference.softmax(scores, allowed)
