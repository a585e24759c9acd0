"""What a normalizer is.

It takes scores [B, H, Tq, Tk] and the keys allowed (True = may attend, or None for all), and gives weights that are
exactly zero elsewhere; a row with no allowed key is all zeros, with zero gradients. Formulas and papers: reference.py.

A new normalizer is one file in this package, or a plugin:

    @NORMALIZERS.register("relu")
    class ReLU(Normalizer):
        formula, summary, paper = "max(s, 0)", "what is below zero does not count", "Wortsman et al. 2023"

        def weights(self, scores, allowed, heads=None):
            return mask_weights(scores.relu(), allowed), None

        def specification(self, scores, allowed):
            return torch.where(allowed, scores.clamp_min(0), 0)
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from regard.attention.axis import required_arguments
from regard.attention.normalizers import NORMALIZERS
from regard.errors import RegardError


class Draw(NamedTuple):
    """The result of sampling a key, for REINFORCE, each [B, H, Tq]; `log_prob` and `entropy` carry gradients."""

    position: Tensor
    log_prob: Tensor
    entropy: Tensor


class Normalizer(ABC):
    """One choice of normalizer."""

    name: ClassVar[str]  # set by registering; the class's own name otherwise
    formula: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    use: ClassVar[str] = ""
    order: ClassVar[int]
    is_softmax: ClassVar[bool] = False  # fused kernels support it

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = cls.__name__
        if "weights" in vars(cls) and "is_softmax" not in vars(cls):
            cls.is_softmax = False

    @property
    def samples(self) -> bool:
        """Whether the weights are sampled, so that recomputing gives others."""
        return False

    @property
    def draws(self) -> bool:
        """Whether `weights` returns a `Draw`."""
        return False

    @abstractmethod
    def weights(
        self, scores: Tensor, allowed: Tensor | None, heads: Tensor | None = None
    ) -> tuple[Tensor, Draw | None]:
        """scores, allowed -> weights, and the draw, if any. `heads`: which heads these are, if not all."""

    @abstractmethod
    def specification(self, scores: Tensor, allowed: Tensor) -> Tensor:
        """The same weights in plain tensor algebra. Built-in normalizers call reference.py."""

    def check(self, query: Tensor) -> None:  # noqa: B027  # most fit any
        """Raise RegardError if it was built for another number of heads than the query's, [B, H, Tq, D]."""

    def describe(self, scores: Tensor) -> str:
        """How scores of this type are normalized, for a plan."""
        return self.name


def mask_scores(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Scores with the lowest finite number where nothing is allowed: an empty row stays finite, forward and back."""
    return scores if allowed is None else scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)


def mask_weights(weights: Tensor, allowed: Tensor | None) -> Tensor:
    """Weights with zeros where nothing is allowed."""
    return weights if allowed is None else weights.masked_fill(~allowed, 0)


_CLASSES: dict[str, type[Normalizer]] = {}  # by spelling, because `attend` looks it up on every call
_SOFTMAX: list[Normalizer] = []


def resolve_normalizer(normalize: str | Normalizer) -> Normalizer:
    """The normalizer that a name or an object stands for."""
    if normalize == "softmax" and _SOFTMAX:
        return _SOFTMAX[0]
    if isinstance(normalize, Normalizer):
        return normalize
    if not isinstance(normalize, str):
        raise RegardError(f"normalize: expected a name or a Normalizer, not {type(normalize).__name__}.")
    normalizer_class = _CLASSES.get(normalize) or _find_class(normalize)
    normalizer = normalizer_class()
    if normalize == "softmax":
        _SOFTMAX.append(normalizer)
    return normalizer


def _find_class(spelling: str) -> type[Normalizer]:
    normalizer_class = NORMALIZERS.find_class(spelling)
    if needed := required_arguments(normalizer_class):
        raise RegardError(
            f"normalize: {normalizer_class.name!r} needs {needed}; pass {normalizer_class.__name__}({needed})."
        )
    return _CLASSES.setdefault(spelling, normalizer_class)
