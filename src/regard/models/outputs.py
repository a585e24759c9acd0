"""What passes between the parts of a model: `Memory` from encoder to decoder, `Decoded` out of a decoder."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol, Self

import torch
from torch import Tensor

from regard.attention import Draw


@dataclass(frozen=True)
class Memory:
    """What an encoder leaves to be attended to."""

    states: Tensor  # [B, T, M]: what queries are compared with
    mask: Tensor  # [B, T], True where there is something
    summary: Tensor  # [B, M]: the whole source in one vector
    values: Tensor  # [B, T, M]: what is taken from where one looks; often the states themselves
    rows: Tensor | None = None  # [B]: which source of a batch each entry is of, where that matters
    own: list[Tensor] = field(default_factory=list)  # weights [B, H, T, T] of each encoder layer, if asked for
    tokens: Tensor | None = None  # [B, T]: the words at these places, where they may be copied

    @property
    def attention_mask(self) -> Tensor:
        """[B, 1, 1, T], as attention wants it."""
        return self.mask[:, None, None]

    def mean(self) -> Tensor:
        """[B, M]: the mean of all places."""
        return average(self.states, self.mask)

    def select(self, index: Tensor) -> Self:
        """The batch entries of this index, in its order."""
        states = self.states.index_select(0, index)
        values = states if self.values is self.states else self.values.index_select(0, index)
        mask, summary = self.mask.index_select(0, index), self.summary.index_select(0, index)
        rows = None if self.rows is None else self.rows.index_select(0, index)
        tokens = None if self.tokens is None else self.tokens.index_select(0, index)
        return replace(self, states=states, values=values, mask=mask, summary=summary, rows=rows, tokens=tokens)


@dataclass(frozen=True)
class Decoded:
    """What a decoder gives for all steps at once."""

    features: Tensor  # [B, Tt, E]: the output layer makes logits of them
    cross: list[Tensor] = field(default_factory=list)  # weights [B, H, Tt, Ts] of each layer that attends, if asked for
    own: list[Tensor] = field(default_factory=list)  # weights [B, H, Tt, Tt] over the words before, if asked for
    encoder: list[Tensor] = field(default_factory=list)  # weights [B, H, Ts, Ts] of each encoder layer, if asked for
    draws: list[Draw] = field(default_factory=list)  # what hard attention drew, for REINFORCE
    copied: "Copied | None" = None  # of a decoder that may copy
    places: Tensor | None = None  # [B]: how many there were to look at, of each source


@dataclass(frozen=True)
class Packing:
    """Texts that share rows [B, T], none of which sees another."""

    passage: Tensor  # which text of its row, from 1; 0 where there is none
    place: Tensor  # counted from the text's beginning

    @cached_property
    def mask(self) -> Tensor | None:
        """[B, 1, T, T], True within a text; None where each row has one, its padding at the end."""
        if int(self.passage.max()) <= 1:
            return None
        return self.passage[:, None, :, None] == self.passage[:, None, None, :]

    def twice(self) -> "Packing":
        """The same rows again below."""
        return Packing(torch.cat([self.passage] * 2), torch.cat([self.place] * 2))


class Copied(NamedTuple):
    """What a decoder would copy, and how much rather it says a word of its own."""

    weights: Tensor  # [..., Ts]: from which place
    own: Tensor  # [...]: a logit; its sigmoid is the share of the decoder's own words


class State(Protocol):
    """What a decoder remembers between steps: a value, never changed."""

    def select(self, index: Tensor, *, same_sources: bool = False) -> Self:
        """The batch entries of this index, in its order; entries may repeat.

        `same_sources`: every entry comes from one with the same source, so what depends on the source alone may stay.
        """
        ...


def average(states: Tensor, mask: Tensor) -> Tensor:
    """[B, T, M] -> [B, M], over what the mask [B, T] allows."""
    weight = mask.to(states.dtype)
    return torch.einsum("btm,bt->bm", states, weight) / weight.sum(1, keepdim=True).clamp_min(1)
