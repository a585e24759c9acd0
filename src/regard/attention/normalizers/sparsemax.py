"""Sparsemax (Martins and Astudillo 2016, arXiv:1602.02068)."""

import torch
from torch import Tensor

from regard.attention import reference
from regard.attention.kernels.entmax import describe_kernel, entmax
from regard.attention.normalizers import NORMALIZERS
from regard.attention.normalizers.base import Draw, Normalizer, mask_scores, mask_weights


@NORMALIZERS.register("sparsemax")
class Sparsemax(Normalizer):
    """The nearest point of the simplex: exact zeros where the score is low."""

    formula = "argmin over the simplex of |p − s|²"
    summary = "exact zeros where the score is low"
    paper = "Martins, Astudillo 2016, arXiv:1602.02068"
    use = 'attend(q, k, v, normalize="sparsemax")'
    order = 3

    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        return mask_weights(entmax(mask_scores(scores, allowed), torch.tensor(2.0)), allowed), None

    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return reference.sparsemax(scores, allowed)

    def describe(self, scores: Tensor) -> str:
        return f"sparsemax, {describe_kernel(scores, 2.0)}"
