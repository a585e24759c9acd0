"""The additive score (Bahdanau et al. 2014, arXiv:1409.0473); Luong's "concat" is the same."""

import math
from typing import Self

import torch
from torch import Tensor, nn

from regard import native
from regard.attention import reference
from regard.attention.kernels.additive import additive_scores, uses_native_kernel
from regard.attention.kernels.grouped_query import repeat_heads
from regard.attention.scores import SCORES
from regard.attention.scores.base import LearnedScore, per_head
from regard.errors import RegardError


@SCORES.register("additive", aliases=("concat", "mlp", "bahdanau"))
class Additive(LearnedScore):
    """v' tanh(U q + W k + b), one network a head.

    The concat form v' tanh(W [q; k]) is this with bias=False: its W is [U, W] side by side. `key_heads` < heads shares
    W among groups of heads.
    """

    formula = "vᵀ tanh(W k + U q + b) = vᵀ tanh(W[q; k] + b)"
    summary = "a small network reads both; the concat form is the same"
    paper = "Bahdanau, Cho, Bengio 2014, arXiv:1409.0473"
    use = 'Attention(width, key_width=source_width, score="additive")'
    order = 5
    compare = "additive"
    hidden_layer = True

    def __init__(
        self,
        query_width: int,
        key_width: int,
        width: int | None = None,
        *,
        heads: int = 1,
        key_heads: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(query_width, key_width, heads)
        self.width = query_width if width is None else width
        if self.width < 1:
            raise RegardError(f"width: {width} is not a size; it must be at least 1.")
        self.key_heads = heads if key_heads is None else key_heads
        if self.key_heads < 1 or heads % self.key_heads:
            raise RegardError(f"key_heads: {key_heads} do not divide the {heads} heads; each must serve equally many.")
        self.weight_query = nn.Parameter(torch.empty(heads, self.width, query_width))  # U
        self.weight_key = nn.Parameter(torch.empty(self.key_heads, self.width, key_width))  # W
        self.bias = nn.Parameter(torch.empty(heads, self.width)) if bias else None  # b
        self.v = nn.Parameter(torch.empty(heads, self.width))
        self.reset_parameters()

    @classmethod
    def create(cls, *, query_width: int, key_width: int, head_width: int, heads: int, key_heads: int) -> Self:
        return cls(query_width, key_width, head_width, heads=heads, key_heads=key_heads)

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(fan-in), biases zero."""
        for weight in (self.weight_query, self.weight_key, self.v):
            bound = 1 / math.sqrt(weight.shape[-1])
            nn.init.uniform_(weight, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def queries(self, query: Tensor) -> Tensor:
        projected = per_head(query, self.weight_query)
        return projected if self.bias is None else projected + self.bias[:, None]

    def keys(self, key: Tensor) -> Tensor:
        return per_head(key, self.weight_key)

    def pairs(self, query: Tensor, key: Tensor, heads: Tensor | None = None) -> Tensor:
        v = self.v if heads is None else self.v[heads]
        return additive_scores(query, repeat_heads(key, query.shape[1]), v)

    def check(self, query: Tensor, key: Tensor) -> None:
        super().check(query, key)
        if key.shape[1] not in (1, self.key_heads):
            raise RegardError(f"key: {key.shape[1]} heads do not fit the additive score, made for {self.key_heads}.")

    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        w_key = self.weight_key.repeat_interleave(len(self.v) // self.key_heads, 0)
        bias = torch.zeros_like(self.v) if self.bias is None else self.bias
        return reference.additive(query, key, self.weight_query, w_key, bias, self.v)

    def sizes(self) -> list[int]:
        return [*super().sizes(), self.key_heads]

    def describe(self, query: Tensor) -> str:
        if uses_native_kernel(query):
            return "additive, C kernel compiled for this processor"
        where = (
            native.unavailable_reason()
            or f"the C kernel takes float32 on the processor, not {query.dtype} on {query.device.type}"
        )
        return f"additive, PyTorch tile by tile ({where})"
