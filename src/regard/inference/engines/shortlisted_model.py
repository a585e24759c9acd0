"""A model whose output layer is restricted to the tokens of a shortlist.

Special tokens keep their ids, since they are the first of every vocabulary and of every shortlist.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from regard.models.outputs import EncoderOutput, State
from regard.models.seq2seq import Seq2Seq


@dataclass(frozen=True)
class ShortlistedState:
    """A decoder's state, and the tokens that each of its rows may generate."""

    inner: State
    allowed: Tensor  # [B, V']

    def select(self, index: Tensor, *, same_sources: bool = False) -> Self:
        """The batch entries of this index."""
        inner = self.inner.select(index, same_sources=same_sources)
        allowed = self.allowed if same_sources else self.allowed.index_select(0, index)
        return replace(self, inner=inner, allowed=allowed)


class ShortlistedModel:
    """Searched like a model. Its tokens are indices of `vocabulary` [V'], the union of the shortlists of a batch; the
    output for each source has only those `allowed` [B, V']."""

    def __init__(self, model: Seq2Seq, vocabulary: Tensor, allowed: Tensor) -> None:
        self._model, self._vocabulary, self._allowed = model, vocabulary, allowed
        self._weight = model.output.weight.index_select(0, vocabulary)
        self._bias = None if model.output.bias is None else model.output.bias.index_select(0, vocabulary)

    def encode(self, source: Tensor, mask: Tensor) -> EncoderOutput:
        """As the model does, with the index of each source."""
        memory = self._model.encode(source, mask)
        return replace(memory, source_index=torch.arange(len(source), device=source.device))

    def start(self, memory: EncoderOutput) -> ShortlistedState:
        """The decoder's state before the first token."""
        assert memory.source_index is not None
        return ShortlistedState(self._model.start(memory), self._allowed.index_select(0, memory.source_index))

    def step(self, tokens: Tensor, state: ShortlistedState) -> tuple[Tensor, ShortlistedState]:
        """Previous tokens [B] and a state -> logits [B, V'] of the next token, and the next state."""
        features, inner = self._model.decoder.step(self._vocabulary[tokens], state.inner)
        logits = torch.nn.functional.linear(features, self._weight, self._bias)
        return logits.masked_fill(~state.allowed, -torch.inf), replace(state, inner=inner)

    def decoder(self, *args: Any, **kwargs: Any) -> Any:
        """A forced pass over target tokens, for the coverage penalty."""
        targets, *rest = args
        return self._model.decoder(self._vocabulary[targets], *rest, **kwargs)
