"""Sigmoid attention (Ramapuram et al. 2024, arXiv:2409.04431)."""

import math

import torch
from torch import Tensor

from regard.attention import reference
from regard.attention.normalizers import NORMALIZERS
from regard.attention.normalizers.base import Draw, Normalizer, mask_weights
from regard.errors import RegardError


@NORMALIZERS.register("sigmoid")
class Sigmoid(Normalizer):
    """1 / (1 + exp(-s_j - bias)), each key for itself. Ramapuram et al. 2024 advise bias = -log(number of keys)."""

    formula = "1 / (1 + exp(−sⱼ − b))"
    summary = "each key for itself, any total"
    paper = "Ramapuram et al. 2024, arXiv:2409.04431"
    use = 'attend(q, k, v, normalize="sigmoid")'
    order = 5

    def __init__(self, bias: float = 0.0) -> None:
        if not math.isfinite(bias):
            raise RegardError(f"bias: {bias} is not a finite number.")
        self.bias = bias

    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        return mask_weights(torch.sigmoid(scores + self.bias if self.bias else scores), allowed), None

    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return reference.sigmoid(scores + self.bias, allowed)
