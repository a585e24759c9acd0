"""The convolutional decoder of Gehring et al. 2017 (arXiv:1705.03122, section 3): attention in every block.

In block l, with state h and the target's embedding g:  d = W h + b + g,  a = softmax(d · z),  c = Σ a (z + e), and c is
added to h. The paper scales c by the square root of the source's length, to make up for averaging; here too.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.attention import Attention, Cache
from regard.models.dropout import Dropout
from regard.models.gated_convolution import SQRT_HALF, GatedConvolution, init_linear
from regard.models.outputs import DecoderOutput, EncoderOutput
from regard.models.token_embedding import Embedding

if TYPE_CHECKING:
    from regard.models.settings.decoders.convolutional import ConvolutionalDecoderSettings


@dataclass(frozen=True)
class ConvolutionalState:
    """Between steps: the inputs that each convolution still covers, the cached memory, and the next position."""

    past_inputs: tuple[Tensor, ...]  # each [B, kernel - 1, D]
    caches: tuple[Cache, ...]
    mask: Tensor
    scale: Tensor  # [B, 1, 1] sqrt of the source's length
    position: int

    def select(self, index: Tensor, *, same_sources: bool = False) -> "ConvolutionalState":
        """The batch entries of this index."""
        past_inputs = tuple(past.index_select(0, index) for past in self.past_inputs)
        if same_sources:
            return replace(self, past_inputs=past_inputs)
        caches = tuple(cache.select(index) for cache in self.caches)
        mask, scale = self.mask.index_select(0, index), self.scale.index_select(0, index)
        return ConvolutionalState(past_inputs, caches, mask, scale, self.position)


class ConvolutionalDecoderBlock(nn.Module):
    """A causal gated convolution, then attention to the memory."""

    def __init__(self, settings: "ConvolutionalDecoderSettings", memory_width: int) -> None:
        super().__init__()
        width, keep_probability = settings.width, 1 - settings.dropout
        self.convolution = GatedConvolution(width, settings.kernel, causal=True, keep_probability=keep_probability)
        self.query = nn.Linear(width, memory_width)
        self.attention = Attention(memory_width, score="dot", project="")
        self.context = nn.Linear(memory_width, width)
        self.dropout = Dropout(settings.dropout)
        init_linear(self.query, 1)
        init_linear(self.context, 1)

    def forward(
        self, x: Tensor, g: Tensor, state: ConvolutionalState, layer: int, need_weights: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """x [B, T, D] of the previous block, g [B, T, M] of the embedding -> output, cached inputs, weights."""
        inner = self.dropout(x)
        past = state.past_inputs[layer]  # [B, kernel - 1, D]
        h = self.convolution(inner, past)
        d = (self.query(h) + g) * SQRT_HALF
        attended = self.attention(d, cache=state.caches[layer], mask=state.mask, need_weights=need_weights)
        h = (h + self.context(attended.output * state.scale)) * SQRT_HALF
        context_length = past.shape[1]
        next_state = torch.cat([past, inner], 1)[:, -context_length:] if context_length else past
        return (x + h) * SQRT_HALF, next_state, attended.weights


class ConvolutionalDecoder(nn.Module):
    """Targets and EncoderOutput -> features [B, T, E]."""

    def __init__(self, settings: "ConvolutionalDecoderSettings", vocabulary: int, memory_width: int) -> None:
        super().__init__()
        E, keep_probability = settings.embedding_width, 1 - settings.dropout
        self.width, self.context_length = settings.width, settings.kernel - 1
        self.embedding = Embedding(
            vocabulary, E, position="learned", max_positions=settings.max_positions, dropout=settings.dropout
        )
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.input_projection, self.output_projection = nn.Linear(E, settings.width), nn.Linear(settings.width, E)
        self.embedding_projection = nn.Linear(E, memory_width) if memory_width != E else nn.Identity()
        init_linear(self.input_projection, keep_probability)
        init_linear(self.output_projection, keep_probability)
        self.blocks = nn.ModuleList(ConvolutionalDecoderBlock(settings, memory_width) for _ in range(settings.layers))
        self.dropout = Dropout(settings.dropout)

    def start(self, memory: EncoderOutput) -> ConvolutionalState:
        """The state before the first token."""
        zeros = memory.states.new_zeros(len(memory.states), self.context_length, self.width)
        caches = tuple(self._block(layer).attention.prepare(memory.states, memory.values) for layer in self._layers)
        length = memory.mask.sum(1).to(memory.states.dtype)[:, None, None]
        return ConvolutionalState((zeros,) * len(self.blocks), caches, memory.attention_mask, length.sqrt(), 0)

    def forward(self, targets: Tensor, memory: EncoderOutput, *, need_weights: bool = False) -> DecoderOutput:
        """targets [B, T], the previous token of each step -> features of all steps."""
        features, _, weights = self._run(targets, self.start(memory), need_weights)
        return DecoderOutput(features, weights)

    def step(self, tokens: Tensor, state: ConvolutionalState) -> tuple[Tensor, ConvolutionalState]:
        """The previous tokens [B] -> features [B, E] of the next token, and the state after it."""
        features, state, _ = self._run(tokens[:, None], state, need_weights=False)
        return features[:, 0], state

    @property
    def _layers(self) -> range:
        return range(len(self.blocks))

    def _block(self, layer: int) -> ConvolutionalDecoderBlock:
        block = self.blocks[layer]
        assert isinstance(block, ConvolutionalDecoderBlock)
        return block

    def _run(
        self, tokens: Tensor, state: ConvolutionalState, need_weights: bool
    ) -> tuple[Tensor, ConvolutionalState, list[Tensor]]:
        e = self.embedding(tokens, offset=state.position)
        g, x = self.embedding_projection(e), self.input_projection(e)
        past_inputs: list[Tensor] = []
        weights: list[Tensor] = []
        for layer in self._layers:
            x, past, w = self._block(layer)(x, g, state, layer, need_weights)
            past_inputs.append(past)
            if w is not None:
                weights.append(w)
        next_state = replace(state, past_inputs=tuple(past_inputs), position=state.position + tokens.shape[1])
        return self.output_projection(self.dropout(x)), next_state, weights
