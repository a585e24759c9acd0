"""Something is said at every place that was read, as BERT guesses hidden words (Devlin et al. 2018, arXiv:1810.04805).

There is no search: all places are said at once, from the memory alone.
"""

import torch
from torch import Tensor, nn

from regard.models.outputs import DecoderOutput, EncoderOutput
from regard.models.settings import PlacesDecoder as PlacesDecoderSettings
from regard.models.transformer_layers import apply_activation


class PlacesDecoder(nn.Module):
    """Memory -> features [B, Ts, E] of what is said at each place."""

    def __init__(self, settings: PlacesDecoderSettings, vocabulary: int, memory_width: int) -> None:
        super().__init__()
        E = settings.embedding_width
        self.activation = settings.activation
        self.inner = nn.Linear(memory_width, E) if settings.inner or memory_width != E else None
        self.norm = nn.LayerNorm(E, eps=settings.norm_epsilon or 1e-5) if settings.inner else None
        if self.inner is not None:
            nn.init.xavier_uniform_(self.inner.weight)
            nn.init.zeros_(self.inner.bias)
        # Of a source of two parts: whether the second follows the first, at the mark that begins them.
        self.whole = nn.Linear(memory_width, memory_width) if settings.follows else None
        self.follows = nn.Linear(memory_width, 2) if settings.follows else None

    def forward(self, targets: Tensor, memory: EncoderOutput, *, need_weights: bool = False) -> DecoderOutput:
        """targets, of which nothing is read -> features of every place."""
        x = memory.states
        if self.inner is not None:
            x = self.inner(x)
        if self.norm is not None:
            x = self.norm(apply_activation(self.activation, x))
        return DecoderOutput(x)

    def following(self, states: Tensor) -> Tensor:
        """[N, M] at marks that begin sources -> logits [N, 2]: the second part follows the first, or not."""
        assert self.whole is not None
        assert self.follows is not None
        told: Tensor = self.follows(torch.tanh(self.whole(states)))
        return told


class NoDecoder(nn.Module):
    """Nothing is said."""

    def __init__(self, settings: object, vocabulary: int, memory_width: int) -> None:
        super().__init__()

    def forward(self, targets: Tensor, memory: EncoderOutput, *, need_weights: bool = False) -> DecoderOutput:
        """What was read, as it is."""
        return DecoderOutput(memory.states)
