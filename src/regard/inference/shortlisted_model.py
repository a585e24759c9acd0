"""A model whose output layer has some words only: what a shortlist leaves of a vocabulary.

Special entries keep their numbers, since they are the first of every vocabulary and of every shortlist.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from regard.models.outputs import EncoderOutput, State
from regard.models.seq2seq import Seq2Seq


@dataclass(frozen=True)
class NarrowState:
    """A decoder's state, and the words that each of its rows may say."""

    inner: State
    allowed: Tensor  # [B, V']

    def select(self, index: Tensor, *, same_sources: bool = False) -> Self:
        """The batch entries of this index."""
        inner = self.inner.select(index, same_sources=same_sources)
        allowed = self.allowed if same_sources else self.allowed.index_select(0, index)
        return replace(self, inner=inner, allowed=allowed)


class Narrowed:
    """Searched like a model; its tokens are places in `words` [V'], each source says those `allowed` [B, V'] only."""

    def __init__(self, model: Seq2Seq, words: Tensor, allowed: Tensor) -> None:
        self._model, self._words, self._allowed = model, words, allowed
        self._weight = model.output.weight.index_select(0, words)
        self._bias = None if model.output.bias is None else model.output.bias.index_select(0, words)

    def encode(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        """As the model does; the memory remembers which source it is of."""
        memory = self._model.encode(source, mask)
        return replace(memory, source_index=torch.arange(len(source), device=source.device))

    def start(self, memory: EncoderOutput) -> NarrowState:
        """The decoder's state before the first word."""
        assert memory.source_index is not None
        return NarrowState(self._model.start(memory), self._allowed.index_select(0, memory.source_index))

    def step(self, tokens: Tensor, state: NarrowState) -> tuple[Tensor, NarrowState]:
        """The words before [B] and a state -> logits [B, V'] of the next word, and the state after it."""
        features, inner = self._model.decoder.step(self._words[tokens], state.inner)
        logits = torch.nn.functional.linear(features, self._weight, self._bias)
        return logits.masked_fill(~state.allowed, -torch.inf), replace(state, inner=inner)

    def decoder(self, *given: Any, **more: Any) -> Any:
        """For the coverage penalty, which sees tokens only to look at the source again."""
        targets, *rest = given
        return self._model.decoder(self._words[targets], *rest, **more)
