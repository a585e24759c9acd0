"""The Transformer's decoder: causal self-attention, attention to the memory, feed-forward (Vaswani et al. 2017).

Without a memory it is a language model: GPT (Radford et al. 2018).
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torch import Tensor, nn

from regard.attention import Attention, Cache
from regard.models.outputs import CopyDistribution, DecoderOutput, EncoderOutput, Packing
from regard.models.transformer_layers import (
    LayerAttention,
    TransformerLayer,
    build_embedding,
    build_layers,
    depth_embedding,
    padding_mask,
)

if TYPE_CHECKING:
    from regard.models.settings.decoders.transformer import TransformerDecoderSettings


@dataclass(frozen=True)
class TransformerState:
    """Between steps: each layer's cache of self-attention, and of cross-attention where there is a memory."""

    self_attention_caches: tuple[Cache, ...]
    cross_attention_caches: tuple[Cache | None, ...]
    mask: Tensor | None  # [B, 1, 1, Ts]
    position: int
    copy: CopyDistribution | None = None  # of the last step, with copy attention

    def select(self, index: Tensor, *, same_sources: bool = False) -> "TransformerState":
        """The batch entries of this index."""
        self_attention_caches = tuple(past.select(index) for past in self.self_attention_caches)
        if same_sources:
            return replace(self, self_attention_caches=self_attention_caches, copy=None)
        cross_attention_caches = tuple(
            None if cache is None else cache.select(index) for cache in self.cross_attention_caches
        )
        mask = None if self.mask is None else self.mask.index_select(0, index)
        return TransformerState(self_attention_caches, cross_attention_caches, mask, self.position)


class TransformerDecoder(nn.Module):
    """Targets and EncoderOutput -> features [B, T, E]. memory_width: None where there is no memory to attend to."""

    def __init__(self, settings: "TransformerDecoderSettings", vocabulary: int, memory_width: int | None) -> None:
        super().__init__()
        self.embedding = build_embedding(settings, vocabulary)
        E, D = settings.embedding_width, settings.width
        self.input_projection = nn.Linear(E, D) if E != D else nn.Identity()
        self.output_projection = nn.Linear(D, E) if E != D else nn.Identity()
        self.layers = build_layers(settings, causal=True, memory_width=memory_width)
        self.depth = depth_embedding(settings)
        self.norm = settings.build_norm(D) if settings.norm_first else nn.Identity()
        self.copy_gate = nn.Linear(D, 1) if settings.copy_mechanism else None

    def start(self, memory: EncoderOutput) -> TransformerState:
        """The state before the first token: the memory projected once for each layer."""
        attentions = [self._attention(layer) for layer in self.layers]
        cross_attention_caches = tuple(
            None if each is None else each.prepare(memory.states, memory.values) for each in attentions
        )
        return TransformerState((Cache(),) * len(self.layers), cross_attention_caches, padding_mask(memory.mask), 0)

    def forward(
        self, targets: Tensor, memory: EncoderOutput, *, packing: Packing | None = None, need_weights: bool = False
    ) -> DecoderOutput:
        """targets [B, T], the previous token of each step -> features of all steps.

        Padding is at the end of a target, where causal attention never sees it. packing: several texts in one row.
        """
        memory_mask = padding_mask(memory.mask)
        self_mask = None if packing is None else packing.mask
        x = self.input_projection(self.embedding(targets, positions=None if packing is None else packing.position))
        attentions: list[LayerAttention] = []
        for number, layer in enumerate(self.layers):
            if self.depth is not None:
                x = x + self.depth[number]
            needed = need_weights or self._copies_from(number)
            x, _, attention = layer(x, mask=self_mask, memory=memory, memory_mask=memory_mask, need_weights=needed)
            attentions.append(attention)
        x = self.norm(x)
        copy = self._copy(x, attentions[-1])
        if not need_weights:
            return DecoderOutput(self.output_projection(x), copy=copy)
        cross = [each.cross_attention for each in attentions if each.cross_attention is not None]
        self_attention = [each.self_attention for each in attentions if each.self_attention is not None]
        return DecoderOutput(self.output_projection(x), cross, self_attention, copy=copy)

    def _copies_from(self, number: int) -> bool:
        return self.copy_gate is not None and number == len(self.layers) - 1

    def _copy(self, x: Tensor, attention: LayerAttention) -> CopyDistribution | None:
        """The copy distribution: the last layer's cross-attention, averaged over its heads."""
        if self.copy_gate is None:
            return None
        assert attention.cross_attention is not None
        return CopyDistribution(attention.cross_attention.mean(1), self.copy_gate(x)[..., 0])

    def step(self, tokens: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """The previous tokens [B], or several [B, T] -> features [B, E] of the next token, and the state after it."""
        tokens = tokens[:, None] if tokens.ndim == 1 else tokens
        x = self.input_projection(self.embedding(tokens, offset=state.position))
        self_attention_caches: list[Cache] = []
        for number, (layer, past, cross_attention_cache) in enumerate(
            zip(self.layers, state.self_attention_caches, state.cross_attention_caches, strict=True)
        ):
            if self.depth is not None:
                x = x + self.depth[number]
            needed = self._copies_from(number)
            x, next_cache, attention = layer(
                x, past=past, prepared=cross_attention_cache, memory_mask=state.mask, need_weights=needed
            )
            self_attention_caches.append(next_cache)
        x = self.norm(x[:, -1:])
        copy = self._copy(x, attention)
        if copy is not None:
            copy = CopyDistribution(copy.weights[:, 0], copy.generate[:, 0])
        state = replace(
            state,
            self_attention_caches=tuple(self_attention_caches),
            position=state.position + tokens.shape[1],
            copy=copy,
        )
        return self.output_projection(x)[:, 0], state

    @staticmethod
    def _attention(layer: nn.Module) -> Attention | None:
        assert isinstance(layer, TransformerLayer)
        return layer.cross_attention
