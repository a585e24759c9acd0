"""Values between the components of a model: `EncoderOutput`, `DecoderOutput`, and a decoder's `State` between steps."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol, Self

import torch
from torch import Tensor

from regard.attention import Draw


@dataclass(frozen=True)
class EncoderOutput:
    """An encoded source. As in PyTorch's Transformer, decoders call it their memory."""

    states: Tensor  # [B, T, M]: the keys of cross-attention
    mask: Tensor  # [B, T], False at padding
    pooled: Tensor  # [B, M]: the whole source in one vector
    values: Tensor  # [B, T, M]: the values of cross-attention; often the states themselves
    source_index: Tensor | None = None  # [B]: the source of a batch that each entry belongs to, where that matters
    self_attention: list[Tensor] = field(default_factory=list)  # weights [B, H, T, T] of each layer, with need_weights
    tokens: Tensor | None = None  # [B, T]: the source's tokens, for a decoder that can copy them

    @property
    def attention_mask(self) -> Tensor:
        """[B, 1, 1, T], the shape that attention takes."""
        return self.mask[:, None, None]

    def mean(self) -> Tensor:
        """[B, M]: the mean of the states."""
        return masked_mean(self.states, self.mask)

    def select(self, index: Tensor) -> Self:
        """The batch entries of this index, in its order."""
        states = self.states.index_select(0, index)
        values = states if self.values is self.states else self.values.index_select(0, index)
        mask, pooled = self.mask.index_select(0, index), self.pooled.index_select(0, index)
        source_index = None if self.source_index is None else self.source_index.index_select(0, index)
        tokens = None if self.tokens is None else self.tokens.index_select(0, index)
        return replace(
            self, states=states, values=values, mask=mask, pooled=pooled, source_index=source_index, tokens=tokens
        )


@dataclass(frozen=True)
class DecoderOutput:
    """A decoder's features of all steps, and with need_weights its attention weights."""

    features: Tensor  # [B, Tt, E]: the output layer turns them into logits
    cross_attention: list[Tensor] = field(default_factory=list)  # [B, H, Tt, Ts] of each layer with cross-attention
    self_attention: list[Tensor] = field(default_factory=list)  # [B, H, Tt, Tt] of each layer
    encoder_attention: list[Tensor] = field(default_factory=list)  # [B, H, Ts, Ts] of each encoder layer
    draws: list[Draw] = field(default_factory=list)  # positions sampled by hard attention, for REINFORCE
    copy: "CopyDistribution | None" = None  # of a decoder with copy attention
    source_lengths: Tensor | None = None  # [B]: encoded positions of each source


@dataclass(frozen=True)
class Packing:
    """Several texts in one row of a batch [B, T]; none attends to another."""

    document: Tensor  # the index of the text within its row, from 1; 0 at padding
    position: Tensor  # counted from the start of the text

    @cached_property
    def mask(self) -> Tensor | None:
        """[B, 1, T, T], True within a text; None where each row has one text, padded at its end."""
        if int(self.document.max()) <= 1:
            return None
        return self.document[:, None, :, None] == self.document[:, None, None, :]

    def repeat(self) -> "Packing":
        """The same rows twice, one copy below the other."""
        return Packing(torch.cat([self.document] * 2), torch.cat([self.position] * 2))


class CopyDistribution(NamedTuple):
    """The pointer of a pointer-generator: where it would copy from, and whether it generates instead."""

    weights: Tensor  # [..., Ts]: probability of copying each source position
    generate: Tensor  # [...]: a logit, whose sigmoid is p_gen of See et al. 2017


class State(Protocol):
    """A decoder's state between steps: an immutable value."""

    def select(self, index: Tensor, *, same_sources: bool = False) -> Self:
        """The batch entries of this index, in its order; entries may repeat.

        `same_sources`: each entry is replaced by one of the same source, so that what depends only on it can stay.
        """
        ...


def masked_mean(states: Tensor, mask: Tensor) -> Tensor:
    """[B, T, M] -> [B, M], the mean where the mask [B, T] is True."""
    weight = mask.to(states.dtype)
    return torch.einsum("btm,bt->bm", states, weight) / weight.sum(1, keepdim=True).clamp_min(1)
