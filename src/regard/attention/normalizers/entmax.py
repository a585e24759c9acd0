"""Entmax (Peters et al. 2019, arXiv:1905.05702), with a learned alpha (Correia et al. 2019, arXiv:1909.00015)."""

import math

import torch
from torch import Tensor, nn

from regard.attention import reference
from regard.attention.kernels.entmax import describe_kernel, entmax
from regard.attention.normalizers import NORMALIZERS
from regard.attention.normalizers.base import Draw, Normalizer, mask_scores, mask_weights
from regard.errors import RegardError


@NORMALIZERS.register("entmax", aliases=("entmax15",))
class Entmax(nn.Module, Normalizer):
    """Between softmax (alpha -> 1) and sparsemax (alpha = 2). With `learnable`, one alpha > 1 a head is learned."""

    formula = "[(α−1)sⱼ − τ]₊^(1/(α−1))"
    summary = "between softmax (α → 1) and sparsemax (α = 2); α can be learned"
    paper = "Peters, Niculae, Martins 2019, arXiv:1905.05702; Correia et al. 2019, arXiv:1909.00015"
    use = "attend(q, k, v, normalize=Entmax(1.3))  # or Entmax(1.5, learnable=True)"
    order = 4

    def __init__(self, alpha: float = 1.5, *, learnable: bool = False, heads: int = 1) -> None:
        super().__init__()
        if not 1 < alpha < math.inf:
            raise RegardError(
                f"alpha: {alpha} is not possible; entmax needs alpha above 1 (softmax is the limit at 1)."
            )
        self.fixed = float(alpha)
        # alpha = 1 + softplus(raw) stays above 1 whatever the optimizer does.
        raw = alpha - 1 + math.log(-math.expm1(1 - alpha))
        self.raw = nn.Parameter(torch.full((heads,), raw)) if learnable else None

    def alpha(self, heads: Tensor | None = None) -> Tensor:
        """[] if fixed, [H, 1, 1] if learned."""
        if self.raw is None:
            return torch.tensor(self.fixed, dtype=torch.float64)
        raw = self.raw if heads is None or len(self.raw) == 1 else self.raw[heads]
        raw = raw if raw.device.type == "mps" else raw.double()  # alpha - 1 keeps its digits
        return (1 + nn.functional.softplus(raw))[:, None, None]

    def check(self, query: Tensor) -> None:
        """Raise RegardError if there is neither one alpha for all heads nor one for each."""
        if self.raw is not None and len(self.raw) not in (1, query.shape[1]):
            raise RegardError(
                f"normalize: entmax has {len(self.raw)} learned alphas, the query {query.shape[1]} heads."
            )

    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        return mask_weights(entmax(mask_scores(scores, allowed), self.alpha(heads)), allowed), None

    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return reference.entmax(scores, allowed, self.alpha().to(scores.dtype))

    def extra_repr(self) -> str:
        return f"alpha={self.fixed}, learnable={self.raw is not None}"

    def describe(self, scores: Tensor) -> str:
        return f"entmax, {describe_kernel(scores, self.fixed if self.raw is None else None)}"
