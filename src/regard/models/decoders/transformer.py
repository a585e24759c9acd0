"""The Transformer's decoder: causal self-attention, attention to the memory, feed-forward (Vaswani et al. 2017).

Without a memory it is a language model: GPT (Radford et al. 2018).
"""

from dataclasses import dataclass, replace

from torch import Tensor, nn

from regard.attention import Attention, Cache
from regard.models.outputs import Copied, Decoded, Memory, Packing
from regard.models.settings import TransformerDecoder as TransformerDecoderSettings
from regard.models.transformer_layers import Layer, Looks, depths, embedding, keys_mask, norm, stacked


@dataclass(frozen=True)
class TransformerState:
    """Between steps: each layer's past, and the memory prepared for each layer, where there is one."""

    pasts: tuple[Cache, ...]
    prepared: tuple[Cache | None, ...]
    mask: Tensor | None  # [B, 1, 1, Ts]
    place: int
    copied: Copied | None = None  # of the last step, for a decoder that copies

    def select(self, index: Tensor, *, same_sources: bool = False) -> "TransformerState":
        """The batch entries of this index."""
        pasts = tuple(past.select(index) for past in self.pasts)
        if same_sources:
            return replace(self, pasts=pasts, copied=None)
        prepared = tuple(None if cache is None else cache.select(index) for cache in self.prepared)
        mask = None if self.mask is None else self.mask.index_select(0, index)
        return TransformerState(pasts, prepared, mask, self.place)


class TransformerDecoder(nn.Module):
    """Targets and Memory -> features [B, T, E]. memory_width: None where there is no memory to attend to."""

    def __init__(self, settings: TransformerDecoderSettings, vocabulary: int, memory_width: int | None) -> None:
        super().__init__()
        self.embedding = embedding(settings, vocabulary)
        E, D = settings.embedding_width, settings.width
        self.inward = nn.Linear(E, D) if E != D else nn.Identity()
        self.outward = nn.Linear(D, E) if E != D else nn.Identity()
        self.layers = stacked(settings, causal=True, memory_width=memory_width)
        self.depth = depths(settings)
        self.norm = norm(settings) if settings.norm_place == "pre" else nn.Identity()
        self.own = nn.Linear(D, 1) if settings.copy_words else None

    def start(self, memory: Memory) -> TransformerState:
        """The state before the first word: the memory projected once for each layer."""
        attentions = [self._attention(layer) for layer in self.layers]
        prepared = tuple(None if each is None else each.prepare(memory.states, memory.values) for each in attentions)
        return TransformerState((Cache(),) * len(self.layers), prepared, keys_mask(memory.mask), 0)

    def forward(
        self, targets: Tensor, memory: Memory, *, packing: Packing | None = None, need_weights: bool = False
    ) -> Decoded:
        """targets [B, T], the words that went before each step -> features of all steps.

        Padding lies at a target's end: what is causal never sees it. packing: of several texts in a row.
        """
        keys = keys_mask(memory.mask)
        own = None if packing is None else packing.mask
        x = self.inward(self.embedding(targets, places=None if packing is None else packing.place))
        looks: list[Looks] = []
        for number, layer in enumerate(self.layers):
            if self.depth is not None:
                x = x + self.depth[number]
            needed = need_weights or self._copies_from(number)
            x, _, look = layer(x, mask=own, memory=memory, memory_mask=keys, need_weights=needed)
            looks.append(look)
        x = self.norm(x)
        copied = self._copied(x, looks[-1])
        if not need_weights:
            return Decoded(self.outward(x), copied=copied)
        cross = [look.memory for look in looks if look.memory is not None]
        itself = [look.own for look in looks if look.own is not None]
        return Decoded(self.outward(x), cross, itself, copied=copied)

    def _copies_from(self, number: int) -> bool:
        return self.own is not None and number == len(self.layers) - 1

    def _copied(self, x: Tensor, look: Looks) -> Copied | None:
        """What would be copied: from where the heads of the last layer look, on the mean."""
        if self.own is None:
            return None
        assert look.memory is not None
        return Copied(look.memory.mean(1), self.own(x)[..., 0])

    def step(self, tokens: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """The words [B], or several [B, T], that went before -> features [B, E] of the next, and the state after it."""
        tokens = tokens[:, None] if tokens.ndim == 1 else tokens
        x = self.inward(self.embedding(tokens, offset=state.place))
        pasts: list[Cache] = []
        for number, (layer, past, prepared) in enumerate(zip(self.layers, state.pasts, state.prepared, strict=True)):
            if self.depth is not None:
                x = x + self.depth[number]
            needed = self._copies_from(number)
            x, after, look = layer(x, past=past, prepared=prepared, memory_mask=state.mask, need_weights=needed)
            pasts.append(after)
        x = self.norm(x[:, -1:])
        copied = self._copied(x, look)
        if copied is not None:
            copied = Copied(copied.weights[:, 0], copied.own[:, 0])
        state = replace(state, pasts=tuple(pasts), place=state.place + tokens.shape[1], copied=copied)
        return self.outward(x)[:, 0], state

    @staticmethod
    def _attention(layer: nn.Module) -> Attention | None:
        assert isinstance(layer, Layer)
        return layer.memory
