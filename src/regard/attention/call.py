"""One validated call of attention: the input of every kernel."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from regard.attention.extents.base import Extent
from regard.attention.normalizers.base import Draw, Normalizer
from regard.attention.positions.base import Position
from regard.attention.scores.base import Score


@dataclass(frozen=True)
class Call:
    """Queries and keys are features already (`Score.queries`, `Score.keys`). Immutable; `rows` selects queries."""

    query: Tensor  # [B, H, Tq, D]
    key: Tensor  # [B, G, Tk, D]
    value: Tensor  # [B, G, Tk, Dv]
    score: Score
    extent: Extent
    normalizer: Normalizer
    scale: float
    mask: Tensor | None = None  # broadcasts to [B, H, Tq, Tk]; bool: True = may attend, float: added
    position: Position | None = None
    dropout: float = 0.0
    offset: int = 0  # the position of the first query; keys start at 0
    centers: Tensor | None = None  # of a predictive extent, [B, H, Tq]
    key_index: Tensor | None = None  # the keys' positions, if not 0 ... Tk - 1
    heads: Tensor | None = None  # which heads these are, if not all
    keep_weights: bool = False  # sampled weights cannot be recomputed: store them if they will be needed
    raw: tuple[Tensor, Tensor] | None = None  # queries and keys before the score saw them, for the reference

    @cached_property
    def query_positions(self) -> Tensor:
        """The queries' positions, [Tq]."""
        return torch.arange(self.offset, self.offset + self.query.shape[2], device=self.query.device)

    @cached_property
    def key_positions(self) -> Tensor:
        """The keys' positions, [Tk]."""
        if self.key_index is not None:
            return self.key_index
        return torch.arange(self.key.shape[2], device=self.key.device)

    @property
    def extent_masks(self) -> bool:
        """Whether the extent masks any key for any query. From the positions alone, no tensor is read."""
        if self.extent.form == "predicted" or self.key_index is not None:
            return True
        Tq, Tk = self.query.shape[2], self.key.shape[2]
        return Tq > 0 and self.extent.masks_any(self.offset, self.offset + Tq - 1, Tk)

    @property
    def restricted(self) -> bool:
        """Whether any key may be masked for any query."""
        return self.mask is not None or self.extent_masks

    @cached_property
    def allowed(self) -> Tensor | None:
        """Where attention may go, broadcasting to [B, H, Tq, Tk]; None for everywhere."""
        masks = []
        if self.extent.form == "predicted":
            assert self.centers is not None
            masks.append(self.extent.allowed_around(self.centers.detach(), self.key_positions))
        elif self.extent_masks:
            extent_mask = self.extent.allowed(self.query_positions, self.key_positions)
            masks += [] if extent_mask is None else [extent_mask]
        if self.mask is not None:
            masks.append(self.mask if self.mask.dtype == torch.bool else self.mask != -torch.inf)
        if not masks:
            return None
        return masks[0] if len(masks) == 1 else masks[0] & masks[1]

    def falloff(self) -> Tensor | None:
        """What the normalized weights are multiplied by, [B, H, Tq, Tk]; None unless the extent is predictive."""
        if self.extent.form != "predicted":
            return None
        assert self.centers is not None
        return self.extent.falloff(self.centers, self.key_positions)

    def bias(self) -> Tensor | None:
        """What is added to the scores, broadcasting to [B, H, Tq, Tk]: a float mask, a position's term, or both."""
        terms = []
        if self.mask is not None and self.mask.dtype != torch.bool:
            terms.append(self.mask)
        if self.position is not None:
            term = self.position.bias(self.query, self.query_positions, self.key_positions, self.scale, self.heads)
            if term is not None:
                terms.append(term)
        if not terms:
            return None
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    @property
    def needs_grad(self) -> bool:
        """Whether anything here may need a gradient; a function may, as its parameters are unknown."""
        if not torch.is_grad_enabled():
            return False
        tensors = (self.query, self.key, self.value, self.mask, self.centers)
        if any(t is not None and t.requires_grad for t in tensors) or self.score.compare == "function":
            return True
        components: tuple[object, ...] = (self.score, self.normalizer, self.position)
        return any(
            p.requires_grad
            for component in components
            if isinstance(component, torch.nn.Module)
            for p in component.parameters()
        )

    def rows(self, start: int, stop: int) -> "Call":
        """The same for queries start ... stop - 1 only."""
        mask = self.mask
        if mask is not None and mask.shape[-2] != 1:
            mask = mask[..., start:stop, :]
        return replace(
            self,
            query=self.query[:, :, start:stop],
            mask=mask,
            offset=self.offset + start,
            centers=None if self.centers is None else self.centers[:, :, start:stop],
        )

    def select_heads(self, heads: Tensor) -> "Call":
        """The same for some heads only; their keys and values are copied, not shared."""
        group = self.query.shape[1] // self.key.shape[1]
        mask = self.mask
        if mask is not None and mask.shape[1] != 1:
            mask = mask[:, heads]
        return replace(
            self,
            query=self.query[:, heads],
            key=self.key[:, heads // group],
            value=self.value[:, heads // group],
            mask=mask,
            centers=None if self.centers is None else self.centers[:, heads],
            heads=heads,
        )


@dataclass(frozen=True)
class KernelOutput:
    """The result of a kernel. `weights` where it computed them, before dropout."""

    output: Tensor  # [B, H, Tq, Dv]
    weights: Tensor | None = None  # [B, H, Tq, Tk]
    draw: Draw | None = None
