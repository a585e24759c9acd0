"""What a score is.

A score turns queries and keys into features (`queries`, `keys`: once per query and once per key, so a decoder that
attends to the same memory at every step projects its keys once) and then compares them pair by pair. Most compare by a
dot product, which the fused kernels do; one that overrides `pairs` runs in the dense and the tiled kernel.

A new score is one file in this package, or a plugin:

    @SCORES.register("negative-distance")
    class NegativeDistance(Score):
        formula, summary, paper = "-|q - k|", "near vectors fit", ""

        def pairs(self, query, key, heads=None):
            return -torch.cdist(query, repeat_heads(key, query.shape[1]))

        def specification(self, query, key):
            return -(query[..., :, None, :] - key[..., None, :, :]).norm(dim=-1)

One with weights of its own for queries and keys derives from `LearnedScore`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

from torch import Tensor, nn
from torch.nn.functional import linear

from regard.attention.axis import required_arguments
from regard.attention.kernels.grouped_query import grouped_matmul, repeat_heads
from regard.attention.scores import SCORES
from regard.errors import RegardError

PairwiseFunction = Callable[[Tensor, Tensor], Tensor]


class Score(ABC):
    """One choice of score."""

    name: ClassVar[str]  # set by registering; the class's own name otherwise
    formula: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    use: ClassVar[str] = ""
    order: ClassVar[int]
    # How features are compared: "dot" by dot products, so fused kernels apply; "additive" by the additive kernel;
    # "function" by any other `pairs`.
    compare: ClassVar[str] = "dot"
    projects: ClassVar[bool] = False  # it has its own weights for queries and keys: `Attention` does not project them
    hidden_layer: ClassVar[bool] = False  # `Attention`'s head width is the width of its hidden layer
    sequential: ClassVar[bool] = False  # it depends on the weights of previous queries: see `keys_after`

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = cls.__name__
        if "pairs" in vars(cls) and "compare" not in vars(cls):
            cls.compare = "function"

    @classmethod
    def create(cls, *, query_width: int, key_width: int, head_width: int, heads: int, key_heads: int) -> Self:
        """A new one for an `Attention` of these sizes."""
        return cls()

    def queries(self, query: Tensor) -> Tensor:
        """[B, H, Tq, Dq] -> features [B, H, Tq, *]."""
        return query

    def keys(self, key: Tensor) -> Tensor:
        """[B, G, Tk, Dk] -> features [B, G, Tk, *]."""
        return key

    def default_scale(self, width: int) -> float:
        """What the compared features are multiplied by if no scale is given; `width` is the query's."""
        return 1.0

    def pairs(self, query: Tensor, key: Tensor, heads: Tensor | None = None) -> Tensor:
        """Compare features, every query with every key: [B, H, Tq, *], [B, G, Tk, *] -> [B, H, Tq, Tk].

        `heads` says which of the score's own heads these are, if not all. Each result must depend on its own query and
        its own key only: long sequences are computed tile by tile.
        """
        return grouped_matmul(query, key.transpose(-2, -1))

    @abstractmethod
    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        """The same score in plain tensor algebra, from queries and keys as given, before the scale.

        Keys are repeated to the queries' heads already. Built-in scores call reference.py.
        """

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise RegardError if these queries and keys do not fit."""
        if query.shape[-1] != key.shape[-1]:
            raise RegardError(
                f"key: width {key.shape[-1]} does not fit the query's width {query.shape[-1]}; a {self.name} score "
                "needs them equal (bilinear and additive scores do not)."
            )

    def sizes(self) -> list[int]:
        """Query width, key width, heads and key heads that it was built for; empty, or the first of these."""
        return []

    def describe(self, query: Tensor) -> str:
        """How queries like these are scored, for a plan."""
        return "dot product of features" if self.compare == "dot" else f"{self.name}, its own function"

    def keys_after(self, key: Tensor, past_weights: Tensor) -> Tensor:
        """Sequential scores: key features [B, H, Tk, *] and past weights [B, H, Tk] -> those for the next query."""
        raise NotImplementedError

    def past_weights(self, weights: Tensor, before: Tensor) -> Tensor:
        """Sequential scores: weights of a query and past weights, each [B, H, Tk] -> past weights of the next query."""
        return weights


class LearnedScore(nn.Module, Score):
    """A score with weights of its own for queries and keys, one set a head."""

    projects = True

    def __init__(self, query_width: int, key_width: int, heads: int) -> None:
        super().__init__()
        for name, size in (("query_width", query_width), ("key_width", key_width), ("heads", heads)):
            if size < 1:
                raise RegardError(f"{name}: {size} is not a size; it must be at least 1.")
        self.query_width, self.key_width, self.heads = query_width, key_width, heads

    @classmethod
    def create(cls, *, query_width: int, key_width: int, head_width: int, heads: int, key_heads: int) -> Self:
        return cls(query_width, key_width, heads=heads)

    def check(self, query: Tensor, key: Tensor) -> None:
        for name, tensor, width in (("query", query, self.query_width), ("key", key, self.key_width)):
            if tensor.shape[-1] != width:
                raise RegardError(
                    f"{name}: width {tensor.shape[-1]} does not fit the {self.name} score, made for {width}."
                )
        if query.shape[1] not in (1, self.heads):
            raise RegardError(f"query: {query.shape[1]} heads do not fit the {self.name} score, made for {self.heads}.")

    def sizes(self) -> list[int]:
        return [self.query_width, self.key_width, self.heads]


class Pairwise(nn.Module, Score):
    """Any function of queries [B, H, Tq, D] and keys [B, H, Tk, D] that gives scores [B, H, Tq, Tk].

    Each score must depend on its own query and its own key only: long sequences are computed tile by tile.
    """

    compare = "function"

    def __init__(self, function: PairwiseFunction) -> None:
        super().__init__()
        self.function = function  # registered as a submodule if it is a module

    def pairs(self, query: Tensor, key: Tensor, heads: Tensor | None = None) -> Tensor:
        scores = self.function(query, repeat_heads(key, query.shape[1]))
        expected_shape = (*query.shape[:3], key.shape[2])
        if not isinstance(scores, Tensor) or scores.shape != expected_shape:
            actual = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise RegardError(
                f"score: the function gave {actual}, but these queries and keys need {tuple(expected_shape)}."
            )
        if scores.dtype != query.dtype:
            raise RegardError(f"score: the function gave {scores.dtype}, but these queries need {query.dtype}.")
        return scores

    def specification(self, query: Tensor, key: Tensor) -> Tensor:
        return self.function(query, key)

    def check(self, query: Tensor, key: Tensor) -> None:
        """Not checked: any widths."""

    def describe(self, query: Tensor) -> str:
        return "the function given"


Pairwise.name = "function"


def per_head(x: Tensor, weight: Tensor) -> Tensor:
    """x [B, H or 1, T, D], weight [H, A, D] -> [B, H, T, A]."""
    heads, width, _ = weight.shape
    if x.shape[1] == 1:  # one product serves all heads
        return linear(x[:, 0], weight.flatten(0, 1)).view(*(x.shape[0], x.shape[2]), heads, width).transpose(1, 2)
    return x @ weight.transpose(-2, -1)


_WITHOUT_WEIGHTS: dict[str, Score] = {}  # by spelling, because `attend` looks it up on every call


def resolve_score(score: "str | Score | PairwiseFunction") -> Score:
    """The score that a name, an object or a function stands for."""
    if isinstance(score, str):
        return _WITHOUT_WEIGHTS.get(score) or _build_score(score)
    if isinstance(score, Score):
        return score
    if callable(score):
        return Pairwise(score)
    raise RegardError(f"score: expected a name, a Score or a function, not {type(score).__name__}.")


def _build_score(spelling: str) -> Score:
    score_class = SCORES.find_class(spelling)
    name = score_class.name
    if score_class.sequential:
        raise RegardError(f"score: a {name} score sees where it attended before; use Attention(width, score={name!r}).")
    arguments = (
        "query_width, key_width, heads=heads"
        if issubclass(score_class, LearnedScore)
        else required_arguments(score_class)
    )
    if issubclass(score_class, nn.Module):
        raise RegardError(
            f"score: {name!r} has weights of its own; pass {score_class.__name__}({arguments}), or use "
            f"Attention(width, score={name!r}), which makes it."
        )
    return _WITHOUT_WEIGHTS.setdefault(spelling, score_class())
