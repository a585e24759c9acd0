"""Stage 3, the normalizer: how do scores become weights?

Each takes scores [B, H, Tq, Tk] and the positions allowed (True = may attend, or None for all), and gives weights that
are exactly zero elsewhere; a row with no allowed position is all zeros, with zero gradients.
Formulas and papers: reference.py.
"""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention import catalog, reference
from regard.attention.kernels.sparse import entmax
from regard.errors import RegardError


class Draw(NamedTuple):
    """What drawing a position leaves for learning, each [B, H, Tq]; `log_prob` and `entropy` carry gradients."""

    position: Tensor
    log_prob: Tensor
    entropy: Tensor


class Normalizer(ABC):
    """One choice of normalizer."""

    name: ClassVar[str]

    @abstractmethod
    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        """scores, allowed -> weights, and the draw, if any. `heads`: which heads these are, if not all."""

    @abstractmethod
    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        """The same weights by reference.py."""


class Softmax(Normalizer):
    """exp(s_j) / sum exp(s): soft attention."""

    name = "softmax"

    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        return _only(torch.softmax(_lowest(scores, allowed), -1), allowed), None

    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return reference.softmax(scores, allowed)


class Sparsemax(Normalizer):
    """The nearest point of the simplex: exact zeros where the score is low."""

    name = "sparsemax"

    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        return _only(entmax(_lowest(scores, allowed), torch.tensor(2.0)), allowed), None

    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return reference.sparsemax(scores, allowed)


class Entmax(nn.Module, Normalizer):
    """Between softmax (alpha -> 1) and sparsemax (alpha = 2). With `learnable`, one alpha > 1 a head is learned."""

    name = "entmax"

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
        return _only(entmax(_lowest(scores, allowed), self.alpha(heads)), allowed), None

    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return reference.entmax(scores, allowed, self.alpha().to(scores.dtype))

    def extra_repr(self) -> str:
        return f"alpha={self.fixed}, learnable={self.raw is not None}"


class Sigmoid(Normalizer):
    """1 / (1 + exp(-s_j - bias)), each key for itself. Ramapuram et al. 2024 advise bias = -log(number of keys)."""

    name = "sigmoid"

    def __init__(self, bias: float = 0.0) -> None:
        if not math.isfinite(bias):
            raise RegardError(f"bias: {bias} is not a finite number.")
        self.bias = bias

    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        return _only(torch.sigmoid(scores + self.bias if self.bias else scores), allowed), None

    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return reference.sigmoid(scores + self.bias, allowed)


class Raw(Normalizer):
    """The scores themselves."""

    name = "none"

    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        return _only(scores, allowed), None

    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return reference.none(scores, allowed)


class Hard(nn.Module, Normalizer):
    """All weight on one position, drawn from the softmax in training mode and the best one in evaluation mode.

    Drawing has no gradient; two ways around it:

    - "reinforce" (Xu et al. 2015): the weights carry no gradient; the draw's log-probability and entropy do, and
      `reinforce.Reinforce` turns them and a reward into a loss with the right expected gradient.
    - "gumbel" (Jang et al. 2016): the largest of score + Gumbel noise is drawn, and gradients pass straight through
      as if the weights were softmax((score + noise) / temperature). Biased, but needs no reward.
    """

    name = "hard"

    def __init__(self, estimator: Literal["reinforce", "gumbel"] = "reinforce", *, temperature: float = 1.0) -> None:
        super().__init__()
        if estimator not in ("reinforce", "gumbel"):
            raise RegardError(f"estimator: there is no {estimator!r}; the choices are reinforce, gumbel.")
        if not 0 < temperature < math.inf:
            raise RegardError(f"temperature: {temperature} is not possible; it must be above 0.")
        self.estimator, self.temperature = estimator, temperature

    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        if not scores.shape[-1]:  # no position to choose
            nowhere = scores.sum(-1)
            return scores, Draw(nowhere.long(), nowhere, nowhere) if self.training else None
        if scores.dtype in (torch.float16, torch.bfloat16):  # too coarse to draw from: near scores would tie
            w, draw = self.weights(scores.float(), allowed, heads)
            return w.to(scores.dtype), draw
        scores = _lowest(scores, allowed)
        if not self.training:
            return _only(_one_hot(scores, scores.argmax(-1)), allowed), None
        # The largest of scores with Gumbel noise is a draw from their softmax.
        numbers = torch.finfo(scores.dtype)
        noise = torch.empty_like(scores, memory_format=torch.contiguous_format).exponential_().clamp_min_(numbers.tiny)
        noisy = scores - noise.log_()
        position = noisy.argmax(-1)
        chosen = _one_hot(scores, position)
        if self.estimator == "gumbel":
            soft = torch.softmax((noisy / self.temperature).clamp_min(numbers.min), -1)
            return _only(chosen + (soft - soft.detach()), allowed), None
        logs = _only(torch.log_softmax(scores, -1), allowed)
        log_prob = logs.gather(-1, position[..., None]).squeeze(-1)
        entropy = -(_only(logs.exp(), allowed) * logs).sum(-1)
        return _only(chosen, allowed), Draw(position, log_prob, entropy)

    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        return reference.hard(scores, allowed)

    def extra_repr(self) -> str:
        return f"{self.estimator!r}, temperature={self.temperature}"


def _lowest(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Scores with the lowest finite number where nothing is allowed: an empty row stays finite, forward and back."""
    return scores if allowed is None else scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)


def _only(weights: Tensor, allowed: Tensor | None) -> Tensor:
    return weights if allowed is None else weights.masked_fill(~allowed, 0)


def _one_hot(scores: Tensor, position: Tensor) -> Tensor:
    return torch.zeros_like(scores).scatter(-1, position[..., None], 1)


_BY_NAME = {kind.name: kind for kind in (Softmax, Sparsemax, Entmax, Sigmoid, Raw, Hard)}
_SOFTMAX = Softmax()


def resolve_normalizer(normalize: str | Normalizer) -> Normalizer:
    """The normalizer that a name or an object stands for."""
    if isinstance(normalize, Normalizer):
        return normalize
    if normalize == "softmax":
        return _SOFTMAX
    if not isinstance(normalize, str):
        raise RegardError(f"normalize: expected a name or a Normalizer, not {type(normalize).__name__}.")
    kind: type[Normalizer] = _BY_NAME[catalog.find(normalize, "normalizer").name]
    return kind()
