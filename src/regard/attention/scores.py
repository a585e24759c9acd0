"""Stage 1, the score: how well does this key fit this query?

A score turns queries and keys into features (`queries`, `keys`: once per query and once per key, so a decoder that
attends to the same memory again and again prepares its keys once) and then compares them pair by pair. All but one
compare by a dot product, so one fused kernel serves them; additive has its own.
Formulas and papers: reference.py.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from regard.attention import catalog, reference
from regard.attention.kernels.additive import additive_scores
from regard.attention.kernels.grouped_query import grouped_matmul, repeat_heads
from regard.errors import RegardError

PairwiseFunction = Callable[[Tensor, Tensor], Tensor]


class Score(ABC):
    """One choice of score. `compare` is "dot", "additive" or "function": the kernels know these three."""

    name: ClassVar[str]
    compare: ClassVar[str] = "dot"

    def queries(self, query: Tensor) -> Tensor:
        """[B, H, Tq, Dq] -> features [B, H, Tq, *]."""
        return query

    def keys(self, key: Tensor) -> Tensor:
        """[B, G, Tk, Dk] -> features [B, G, Tk, *]."""
        return key

    def default_scale(self, width: int) -> float:
        """What the compared features are multiplied by if the caller names no scale; `width` is the query's."""
        return 1.0

    def pairs(self, query: Tensor, key: Tensor, heads: Tensor | None = None) -> Tensor:
        """Compare features, every query with every key: [B, H, Tq, *], [B, G, Tk, *] -> [B, H, Tq, Tk].

        `heads` says which of the score's own heads these are, if not all.
        """
        return grouped_matmul(query, key.transpose(-2, -1))

    @abstractmethod
    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        """The same score by reference.py, keys already repeated to the queries' heads."""

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise RegardError if these queries and keys do not fit."""
        if query.shape[-1] != key.shape[-1]:
            raise RegardError(
                f"key: width {key.shape[-1]} does not fit the query's width {query.shape[-1]}; a {self.name} score "
                "needs them equal (bilinear and additive scores do not)."
            )


class Dot(Score):
    """q·k."""

    name = "dot"

    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        return reference.dot(query, key)


class ScaledDot(Score):
    """q·k / sqrt(D)."""

    name = "scaled-dot"

    def default_scale(self, width: int) -> float:
        return 1 / math.sqrt(width) if width else 1.0

    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        return reference.dot(query, key)  # the caller multiplies by the scale


class Cosine(Score):
    """q·k / (|q| |k|)."""

    name = "cosine"

    def queries(self, query: Tensor) -> Tensor:
        return _unit(query)

    def keys(self, key: Tensor) -> Tensor:
        return _unit(key)

    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        return reference.cosine(query, key)


class _Learned(nn.Module, Score):
    """A score with weights of its own, one set a head."""

    def __init__(self, query_width: int, key_width: int, heads: int) -> None:
        super().__init__()
        for name, size in (("query_width", query_width), ("key_width", key_width), ("heads", heads)):
            if size < 1:
                raise RegardError(f"{name}: {size} is not a size; it must be at least 1.")
        self.query_width, self.key_width, self.heads = query_width, key_width, heads

    def check(self, query: Tensor, key: Tensor) -> None:
        for name, tensor, width in (("query", query, self.query_width), ("key", key, self.key_width)):
            if tensor.shape[-1] != width:
                raise RegardError(
                    f"{name}: width {tensor.shape[-1]} does not fit the {self.name} score, made for {width}."
                )
        if query.shape[1] not in (1, self.heads):
            raise RegardError(f"query: {query.shape[1]} heads do not fit the {self.name} score, made for {self.heads}.")


class Bilinear(_Learned):
    """q' W k, one W a head [H, Dq, Dk]. The same as a dot product of W'q with k, which is how it runs."""

    name = "bilinear"

    def __init__(self, query_width: int, key_width: int, *, heads: int = 1) -> None:
        super().__init__(query_width, key_width, heads)
        self.weight = nn.Parameter(torch.empty(heads, query_width, key_width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform, so that unit-variance queries and keys give scores of about unit variance."""
        bound = math.sqrt(3 / (self.query_width * self.key_width))
        nn.init.uniform_(self.weight, -bound, bound)

    def queries(self, query: Tensor) -> Tensor:
        return _per_head(query, self.weight.transpose(-2, -1))

    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        return reference.bilinear(query, key, self.weight)


class Additive(_Learned):
    """v' tanh(U q + W k + b), one network a head.

    The concat form v' tanh(W [q; k]) is this with bias=False: its W is [U, W] side by side. `key_heads` < heads shares
    W among groups of heads.
    """

    name = "additive"
    compare = "additive"

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

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(fan-in), biases zero."""
        for weight in (self.weight_query, self.weight_key, self.v):
            bound = 1 / math.sqrt(weight.shape[-1])
            nn.init.uniform_(weight, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def queries(self, query: Tensor) -> Tensor:
        projected = _per_head(query, self.weight_query)
        return projected if self.bias is None else projected + self.bias[:, None]

    def keys(self, key: Tensor) -> Tensor:
        return _per_head(key, self.weight_key)

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


class Location(Additive):
    """v' tanh(U q + W k + F f + b): additive, with features f of where it looked before; for queries one by one.

    filters, size: how many, and over how many keys, an odd number. coverage: f sees the sum of all weights before, not
    the last ones alone. `Attention` carries the weights from query to query.
    """

    name = "location"

    def __init__(
        self,
        query_width: int,
        key_width: int,
        width: int | None = None,
        *,
        heads: int = 1,
        filters: int = 16,
        size: int = 15,
        coverage: bool = False,
    ) -> None:
        if filters < 1:
            raise RegardError(f"filters: {filters} is not possible; there must be at least 1.")
        if size < 1 or size % 2 == 0:
            raise RegardError(f"size: {size} is not possible; a filter's width must be odd, so that it has a middle.")
        super().__init__(query_width, key_width, width, heads=heads)
        self.coverage = coverage
        self.filters = nn.Parameter(torch.empty(filters, size))
        self.weight_filter = nn.Parameter(torch.empty(heads, self.width, filters))  # F
        for weight in (self.filters, self.weight_filter):
            bound = 1 / math.sqrt(weight.shape[-1])
            nn.init.uniform_(weight, -bound, bound)

    def location_keys(self, key: Tensor, past_weights: Tensor) -> Tensor:
        """Key features [B, H, Tk, A] and the weights before [B, H, Tk] -> key features for the next query."""
        count, size = self.filters.shape
        flat = nn.functional.conv1d(past_weights.flatten(0, 1)[:, None], self.filters[:, None], padding=size // 2)
        features = flat.view(*past_weights.shape[:2], count, -1).transpose(2, 3)  # [B, H, Tk, F]
        return key + features @ self.weight_filter.transpose(-2, -1)

    def check(self, query: Tensor, key: Tensor) -> None:
        raise RegardError("score: a location score sees where it looked before; use Attention(..., score='location').")


class Pairwise(nn.Module, Score):
    """Any function of queries [B, H, Tq, D] and keys [B, H, Tk, D] that gives scores [B, H, Tq, Tk].

    Each score must depend on its own query and its own key only: long sequences are computed tile by tile.
    """

    name = "function"
    compare = "function"

    def __init__(self, function: PairwiseFunction) -> None:
        super().__init__()
        self.function = function  # registered as a part if it is a module itself

    def pairs(self, query: Tensor, key: Tensor, heads: Tensor | None = None) -> Tensor:
        scores = self.function(query, repeat_heads(key, query.shape[1]))
        wanted = (*query.shape[:3], key.shape[2])
        if not isinstance(scores, Tensor) or scores.shape != wanted:
            got = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise RegardError(f"score: the function gave {got}, but these queries and keys need {tuple(wanted)}.")
        if scores.dtype != query.dtype:
            raise RegardError(f"score: the function gave {scores.dtype}, but these queries need {query.dtype}.")
        return scores

    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        return self.function(query, key)

    def check(self, query: Tensor, key: Tensor) -> None:
        """The function knows."""


def _unit(x: Tensor) -> Tensor:
    """x / |x|, a zero vector staying zero; in half precision 1e-12 would be zero itself."""
    wide = torch.promote_types(x.dtype, torch.float32)
    return normalize(x.to(wide), dim=-1).to(x.dtype)


def _per_head(x: Tensor, weight: Tensor) -> Tensor:
    """x [B, H or 1, T, D], weight [H, A, D] -> [B, H, T, A]."""
    heads, width, _ = weight.shape
    if x.shape[1] == 1:  # one product serves all heads
        return linear(x[:, 0], weight.flatten(0, 1)).view(*(x.shape[0], x.shape[2]), heads, width).transpose(1, 2)
    return x @ weight.transpose(-2, -1)


_WITHOUT_WEIGHTS = {score.name: score() for score in (Dot, ScaledDot, Cosine)}


def resolve_score(score: "str | Score | PairwiseFunction") -> Score:
    """The score that a name, an object or a function stands for."""
    if isinstance(score, Score):
        return score
    if isinstance(score, str):
        name = catalog.find(score, "score").name
        if name not in _WITHOUT_WEIGHTS:
            raise RegardError(
                f"score: {name!r} has weights of its own; pass {name.capitalize()}(query_width, key_width, ...), "
                f"or use Attention(score={name!r}), which makes it."
            )
        return _WITHOUT_WEIGHTS[name]
    if callable(score):
        return Pairwise(score)
    raise RegardError(f"score: expected a name, a Score or a function, not {type(score).__name__}.")
