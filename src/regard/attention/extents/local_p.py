"""Local predictive attention (Luong et al. 2015, arXiv:1508.04025, section 3.2)."""

import math
from typing import Self

import torch
from torch import Tensor, nn

from regard.attention import reference
from regard.attention.extents import EXTENTS
from regard.attention.extents.base import Extent
from regard.attention.type_checks import is_real
from regard.errors import RegardError


@EXTENTS.register("local-p", aliases=("predictive",))
class LocalPredictive(nn.Module, Extent):
    """Luong's local-p: a window around the position p_t = S sigmoid(v' tanh(W h_t)) that the query predicts.

    The weights inside it are normalized, then multiplied by a Gaussian of sigma = radius / 2 around p_t, and not
    normalized again. S is the number of keys up to the last one the mask allows. One W and v a head.
    """

    formula = "|s − p| ≤ r, then × exp(−(s−p)²/2σ²), p = S·σ(vᵀ tanh(W q)), σ = r/2"
    summary = "a window around a position the query predicts, fading out from it"
    paper = "Luong, Pham, Manning 2015, arXiv:1508.04025"
    use = "Attention(width, extent=LocalPredictive(width, radius=5))"
    constructor = "LocalPredictive(query_width, radius=5, heads=heads)"
    order = 5
    form = "predicted"

    def __init__(self, query_width: int, *, radius: float, width: int | None = None, heads: int = 1) -> None:
        super().__init__()
        if not is_real(radius) or not 0 < radius < math.inf:
            raise RegardError(
                f"radius: {radius!r} is not possible; it must be above 0, as the Gaussian's sigma is half of it."
            )
        width = query_width if width is None else width
        for name, size in (("query_width", query_width), ("width", width), ("heads", heads)):
            if size < 1:
                raise RegardError(f"{name}: {size} is not a size; it must be at least 1.")
        self.radius, self.query_width, self.heads = radius, query_width, heads
        self.weight = nn.Parameter(torch.empty(heads, width, query_width))
        self.v = nn.Parameter(torch.empty(heads, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(fan-in)."""
        for weight in (self.weight, self.v):
            bound = 1 / math.sqrt(weight.shape[-1])
            nn.init.uniform_(weight, -bound, bound)

    def centers(self, query: Tensor, length: Tensor) -> Tensor:
        """query [B, H or 1, Tq, D], length [B or 1, H or 1, Tq or 1] -> p_t [B, H, Tq]."""
        if query.shape[-1] != self.query_width:
            raise RegardError(f"query: width {query.shape[-1]} does not fit local-p, made for {self.query_width}.")
        if query.shape[1] not in (1, self.heads):
            raise RegardError(f"query: {query.shape[1]} heads do not fit local-p, made for {self.heads}.")
        wide = torch.promote_types(query.dtype, torch.float32)  # half precision cannot tell position 1000 from 1001
        return reference.predicted_center(query.to(wide), self.weight.to(wide), self.v.to(wide), length.to(wide))

    def allowed_around(self, centers: Tensor, key_positions: Tensor) -> Tensor:
        return reference.local_p(centers, key_positions, self.radius)

    def falloff(self, centers: Tensor, key_positions: Tensor) -> Tensor:
        return reference.gaussian(centers, key_positions, self.radius)

    @classmethod
    def create(cls, *, query_width: int, heads: int, radius: int) -> Self:
        return cls(query_width, radius=radius, heads=heads)
