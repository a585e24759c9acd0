"""`Attention`: the family as a module, with heads and projections.

Vaswani et al. 2017 (arXiv:1706.03762, section 3.2.2) for several heads, Shazeer 2019 (arXiv:1911.02150) and Ainslie
et al. 2023 (arXiv:2305.13245) for key-value heads that are shared. With one head and an additive score it is
Bahdanau's attention, with a bilinear one Luong's "general".
"""

from typing import Any, Never

import torch
from torch import Tensor, nn

from regard.attention.arguments import (
    build_call_from_features,
    check_position_fits_score,
    check_scale_and_dropout,
    reject_unknown_keywords,
)
from regard.attention.cache import Cache
from regard.attention.call import KernelOutput
from regard.attention.extents.base import Extent, resolve_extent
from regard.attention.functional import AttentionOutput, compute
from regard.attention.kernels.nan_guard import project_finite
from regard.attention.normalizers.base import Draw, Normalizer, resolve_normalizer
from regard.attention.planner import check_backend
from regard.attention.positions.base import Position, new_position
from regard.attention.scores import SCORES
from regard.attention.scores.base import PairwiseFunction, Score, resolve_score
from regard.errors import RegardError


class Attention(nn.Module):
    """Attention with projections: self or cross, one or many heads, all at once or step by step.

    Args:
        width: of the queries, and of the output unless `output_width` says otherwise.
        heads: query heads.
        key_heads: key-value heads, which divide `heads`: fewer for grouped-query attention, 1 for multi-query.
        key_width, value_width: of the memory attended to; `width` and `key_width` if not given.
        head_width: of each head's queries and keys (of its hidden layer, for an additive score); width / heads.
        value_head_width: of each head's values; head_width.
        output_width: of the output projection.
        project: which of query, key, value and output are projected, as letters: "qkvo" if not given, and "vo" for
            bilinear and additive scores, which bring their own weights for queries and keys.
        bias: whether the projections have biases.
        score, extent, normalize, position, scale, dropout, backend: as for `attend`. Dropout acts in training only.
            Names with weights ("additive", "bilinear", "rotary", ...) are built with fitting sizes.
    """

    def __init__(
        self,
        width: int,
        *,
        heads: int = 1,
        key_heads: int | None = None,
        key_width: int | None = None,
        value_width: int | None = None,
        head_width: int | None = None,
        value_head_width: int | None = None,
        output_width: int | None = None,
        project: str | None = None,
        bias: bool = True,
        score: str | Score | PairwiseFunction = "scaled-dot",
        extent: str | Extent = "global",
        normalize: str | Normalizer = "softmax",
        position: str | Position | None = None,
        scale: float | None = None,
        dropout: float = 0.0,
        backend: str = "auto",
        **unknown: Never,
    ) -> None:
        super().__init__()
        if unknown:
            reject_unknown_keywords("Attention()", unknown)
        self.width, self.heads = width, heads
        self.key_heads = heads if key_heads is None else key_heads
        self.key_width = width if key_width is None else key_width
        self.value_width = self.key_width if value_width is None else value_width
        if head_width is None:
            if heads > 0 and width % heads:
                raise RegardError(
                    f"heads: {heads} do not divide the width {width}; name a head_width, or change one of them."
                )
            head_width = width // max(1, heads)
        self.head_width = head_width
        self._check_sizes(value_head_width, output_width)

        if isinstance(score, str):
            sizes = {"query_width": width, "key_width": self.key_width, "head_width": head_width}
            self.score = SCORES.find_class(score).create(**sizes, heads=heads, key_heads=self.key_heads)
        else:
            self.score = resolve_score(score)
        self._projects, self._sequential = self.score.projects, self.score.sequential
        self._check_score()
        project = self._checked_projection(project)

        if value_head_width is None:
            value_head_width = head_width
        if "v" not in project:
            value_head_width = self._split_width("value_width", self.value_width)
        self.value_head_width = value_head_width
        self.output_width = heads * value_head_width
        self.query = nn.Linear(width, heads * head_width, bias) if "q" in project else None
        self.key = nn.Linear(self.key_width, self.key_heads * head_width, bias) if "k" in project else None
        self.value = nn.Linear(self.value_width, self.key_heads * value_head_width, bias) if "v" in project else None
        self.output = None
        if "o" in project:
            self.output = nn.Linear(heads * value_head_width, width if output_width is None else output_width, bias)
            self.output_width = self.output.out_features
        elif output_width not in (None, self.output_width):
            raise RegardError(
                f"output_width: without an output projection it is {self.output_width}, not {output_width}."
            )

        self.extent = resolve_extent(extent)
        self.normalizer = resolve_normalizer(normalize)
        self.position: Position | None = None
        if position is not None:
            self.position = new_position(position, heads=heads, width=head_width, value_width=value_head_width)
            check_position_fits_score(self.position, self.score)
        check_scale_and_dropout(scale, dropout)
        check_backend(backend)
        self.scale, self.dropout, self.backend = scale, dropout, backend
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Projections uniform as Glorot and Bengio 2010 advise, biases zero; the score keeps its own."""
        for projection in (self.query, self.key, self.value, self.output):
            if projection is not None:
                nn.init.xavier_uniform_(projection.weight)
                if projection.bias is not None:
                    nn.init.zeros_(projection.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        cache: Cache | None = None,
        need_weights: bool = False,
    ) -> AttentionOutput:
        """Attend from `query` to `key` and `value`, or to itself.

        Args:
            query: [B, Tq, width].
            key: [B, Tk, key_width]; None for self-attention, or when a prepared cache is given.
            value: [B, Tk, value_width]; the key if not given.
            mask: broadcasts to [B, H, Tq, Tk], Tk counting what the cache holds. True = may attend; floats are added.
            cache: `Cache()` or the one returned before, to go on step by step; or one from `prepare`.
            need_weights: also give the weights, and what hard attention drew.

        Returns:
            AttentionOutput: output [B, Tq, output_width], weights [B, H, Tq, Tk], draw, and the cache for the next
            step. Unpacks as `output, weights`.
        """
        self._check_input("query", query, self.width)
        if self._sequential:
            return self._attend_stepwise(query, key, value, mask, cache, need_weights)
        offset = cache.steps if cache is not None else 0
        if cache is not None and cache.fixed:
            if key is not None or value is not None:
                raise RegardError("key: the cache is a prepared memory already; give one or the other.")
            next_cache: Cache | None = cache.advance(query.shape[1])
            keys, values = cache.key_values
        else:
            if key is None and value is not None:
                raise RegardError("value: it was given without a key; give both, or neither for self-attention.")
            if cache is not None and key is not None:
                raise RegardError(
                    "key: a growing cache is for self-attention; for cross-attention use cache=prepare(key)."
                )
            memory = query if key is None else key
            if memory is not query or self.key_width != self.width or self.value_width != self.width:
                self._check_memory(memory, value)
            keys, values = self._project_memory(memory, value, offset)
            next_cache = None
            if cache is not None:
                next_cache = cache.append(keys, values)
                keys, values = next_cache.key_values
        if keys.shape[0] != query.shape[0]:
            raise RegardError(f"key: a batch of {keys.shape[0]} does not fit the query's {query.shape[0]}.")
        outcome = self._attend(query, keys, values, mask, offset, need_weights)
        output = outcome.output.transpose(1, 2).flatten(2)  # [B, Tq, H Dv]
        if self.output is not None:
            output = project_finite(self.output, output)
        return AttentionOutput(output, outcome.weights if need_weights else None, outcome.draw, next_cache)

    def _attend(
        self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, offset: int, need_weights: bool
    ) -> KernelOutput:
        """query [B, Tq, width] at prepared keys and values."""
        raw = query[:, None]  # [B, 1, Tq, width]
        if self._projects:
            features = project_finite(self.score.queries, raw)
        else:
            features = project_finite(self.score.queries, self._split(query, self.query, self.heads))
        call = build_call_from_features(
            raw,
            features,
            keys,
            values,
            score=self.score,
            extent=self.extent,
            normalizer=self.normalizer,
            mask=mask,
            scale=self.scale,
            position=self.position,
            dropout=self.dropout if self.training else 0.0,
            offset=offset,
            transform_keys=False,
        )
        return compute(call, need_weights=need_weights, backend=self.backend)

    def _attend_stepwise(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        mask: Tensor | None,
        cache: Cache | None,
        need_weights: bool,
    ) -> AttentionOutput:
        """One query after the other, each with the weights of those before it."""
        if (key is None) == (cache is None) or (cache is not None and not cache.fixed):
            raise RegardError(
                f"key: a {self.score.name} score attends to a memory; give a key, or a cache from prepare(key)."
            )
        if cache is None:
            assert key is not None
            cache = self.prepare(key, value)
        keys, values = cache.key_values
        past_weights = cache.past_weights
        if past_weights is None:
            past_weights = keys.new_zeros(len(keys), self.heads, keys.shape[2])
        outputs, weights, draws = [], [], []
        for at in range(query.shape[1]):
            row = mask[..., at : at + 1, :] if mask is not None and mask.ndim > 2 and mask.shape[-2] > 1 else mask
            step_keys = self.score.keys_after(keys, past_weights)
            outcome = self._attend(query[:, at : at + 1], step_keys, values, row, cache.steps + at, True)
            assert outcome.weights is not None
            past_weights = self.score.past_weights(outcome.weights[:, :, 0], past_weights)
            outputs.append(outcome.output)
            weights.append(outcome.weights)
            draws.append(outcome.draw)
        output = torch.cat(outputs, 2).transpose(1, 2).flatten(2)
        if self.output is not None:
            output = project_finite(self.output, output)
        all_weights = torch.cat(weights, 2) if need_weights else None
        return AttentionOutput(
            output, all_weights, _concatenate_draws(draws), cache.advance(query.shape[1], past_weights)
        )

    def prepare(self, key: Tensor, value: Tensor | None = None) -> Cache:
        """Project a memory once, to attend to it many times: `attention(query, cache=attention.prepare(memory))`."""
        self._check_memory(key, value)
        return Cache.memory(*self._project_memory(key, value, 0))

    def _check_memory(self, key: Tensor, value: Tensor | None) -> None:
        self._check_input("key", key, self.key_width)
        self._check_input("value", key if value is None else value, self.value_width)
        if value is not None and value.shape[:2] != key.shape[:2]:
            raise RegardError(
                f"value: {tuple(value.shape)} does not fit the key's {tuple(key.shape)} in batch and time."
            )

    def _project_memory(self, key: Tensor, value: Tensor | None, offset: int) -> tuple[Tensor, Tensor]:
        """Key features [B, G, T, D], with positions, and values [B, G, T, Dv]."""
        value = key if value is None else value
        values = self._split(value, self.value, self.key_heads)
        if self._projects:
            keys = project_finite(self.score.keys, key[:, None])
            keys = keys.expand(-1, values.shape[1], -1, -1) if keys.shape[1] == 1 else keys
        else:
            keys = project_finite(self.score.keys, self._split(key, self.key, self.key_heads))
        return self.position.transform(keys, offset) if self.position is not None else keys, values

    @staticmethod
    def _split(x: Tensor, projection: nn.Linear | None, heads: int) -> Tensor:
        """[B, T, width] -> [B, heads, T, head width]."""
        x = x if projection is None else project_finite(projection, x)
        return x.view(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(1, 2)

    def _split_width(self, name: str, width: int) -> int:
        if width % self.key_heads:
            raise RegardError(f"{name}: {width} is not projected and cannot be split into {self.key_heads} heads.")
        return width // self.key_heads

    def _check_sizes(self, value_head_width: int | None, output_width: int | None) -> None:
        sizes = {"width": self.width, "heads": self.heads, "key_heads": self.key_heads, "key_width": self.key_width}
        sizes |= {"value_width": self.value_width, "head_width": self.head_width}
        for name, given in (("value_head_width", value_head_width), ("output_width", output_width)):
            if given is not None:
                sizes[name] = given
        for name, size in sizes.items():
            if size < 1:
                raise RegardError(f"{name}: {size} is not a size; it must be at least 1.")
        if self.heads % self.key_heads:
            raise RegardError(
                f"key_heads: {self.key_heads} do not divide the {self.heads} heads; each must serve equally many."
            )

    def _check_score(self) -> None:
        """Raise RegardError if a given score was built for other sizes."""
        score_sizes = self.score.sizes()
        own_sizes = [self.width, self.key_width, self.heads, self.key_heads][: len(score_sizes)]
        if score_sizes != own_sizes:
            raise RegardError(
                f"score: the {self.score.name} score was made for query width, key width and heads {score_sizes}, this "
                f"attention has {own_sizes}."
            )

    def _checked_projection(self, project: str | None) -> str:
        if project is None:
            return "vo" if self._projects else "qkvo"
        if unknown := set(project) - set("qkvo"):
            raise RegardError(f"project: there is no {sorted(unknown)[0]!r}; the letters are q, k, v and o.")
        if self._projects and set(project) & set("qk"):
            raise RegardError(
                f"project: the {self.score.name} score has its own weights for queries and keys; leave out q and k."
            )
        if not self._projects:
            for letter, name, width, heads in (
                ("q", "width", self.width, self.heads),
                ("k", "key_width", self.key_width, self.key_heads),
            ):
                if letter not in project and width != heads * self.head_width and self.score.compare == "dot":
                    raise RegardError(
                        f"project: without {letter!r} the {name} {width} would have to be {heads} heads of "
                        f"{self.head_width}; project it, or change head_width."
                    )
        return project

    def _check_input(self, name: str, x: Tensor, width: int) -> None:
        if not isinstance(x, Tensor) or x.ndim != 3:
            got = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            raise RegardError(f"{name}: expected [batch, time, width], got {got}.")
        if not x.is_floating_point():
            raise RegardError(f"{name}: expected floating-point numbers, got {x.dtype}.")
        if x.shape[-1] != width:
            raise RegardError(f"{name}: width {x.shape[-1]} does not fit this attention, made for {width}.")
        projection = self.query or self.key or self.value or self.output
        if (
            projection is not None
            and x.dtype != projection.weight.dtype
            and not torch.is_autocast_enabled(x.device.type)
        ):
            raise RegardError(
                f"{name}: {x.dtype} does not fit this attention's {projection.weight.dtype}; convert one of them."
            )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Weights saved when the normalizer was called `normalise` are loaded, too."""
        if (old := f"{prefix}normalise.raw") in state_dict:
            state_dict[f"{prefix}normalizer.raw"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        shared = f", key_heads={self.key_heads}" if self.key_heads != self.heads else ""
        axes = f"score={self.score.name!r}, extent={self.extent.name!r}, normalize={self.normalizer.name!r}"
        return f"{self.width}, heads={self.heads}{shared}, {axes}"


def _concatenate_draws(draws: list[Draw | None]) -> Draw | None:
    """Draws of single queries, as one."""
    present = [draw for draw in draws if draw is not None]
    if len(present) < len(draws) or not present:
        return None
    positions, logs, entropies = (torch.cat(parts, 2) for parts in zip(*present, strict=True))
    return Draw(positions, logs, entropies)
