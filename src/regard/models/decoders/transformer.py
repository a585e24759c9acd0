"""The Transformer's decoder: causal self-attention, attention to the memory, feed-forward (Vaswani et al. 2017)."""

from dataclasses import dataclass, replace

from torch import Tensor, nn

from regard.attention import Attention, Cache
from regard.models.memory import Decoded, Memory
from regard.models.settings import TransformerDecoder as TransformerDecoderSettings
from regard.models.transformer import Layer, Looks, embedding, keys_mask, norm


@dataclass(frozen=True)
class TransformerState:
    """Between steps: each layer's past, and the memory prepared for each layer."""

    pasts: tuple[Cache, ...]
    prepared: tuple[Cache, ...]
    mask: Tensor | None  # [B, 1, 1, Ts]
    place: int

    def select(self, index: Tensor, *, same_sources: bool = False) -> "TransformerState":
        """The batch entries of this index."""
        pasts = tuple(past.select(index) for past in self.pasts)
        if same_sources:
            return replace(self, pasts=pasts)
        prepared = tuple(cache.select(index) for cache in self.prepared)
        mask = None if self.mask is None else self.mask.index_select(0, index)
        return TransformerState(pasts, prepared, mask, self.place)


class TransformerDecoder(nn.Module):
    """Targets and Memory -> features [B, T, E]."""

    def __init__(self, settings: TransformerDecoderSettings, vocabulary: int, memory_width: int) -> None:
        super().__init__()
        self.embedding = embedding(settings, vocabulary)
        E, D = settings.embedding_width, settings.width
        self.inward = nn.Linear(E, D) if E != D else nn.Identity()
        self.outward = nn.Linear(D, E) if E != D else nn.Identity()
        self.layers = nn.ModuleList(
            Layer(settings, causal=True, memory_width=memory_width) for _ in range(settings.layers)
        )
        self.norm = norm(settings) if settings.norm_place == "pre" else nn.Identity()

    def start(self, memory: Memory) -> TransformerState:
        """The state before the first word: the memory projected once for each layer."""
        prepared = tuple(self._attention(layer).prepare(memory.states, memory.values) for layer in self.layers)
        return TransformerState((Cache(),) * len(self.layers), prepared, keys_mask(memory.mask), 0)

    def forward(self, targets: Tensor, memory: Memory, *, need_weights: bool = False) -> Decoded:
        """targets [B, T], the words that went before each step -> features of all steps.

        Padding lies at a target's end: what is causal never sees it.
        """
        keys = keys_mask(memory.mask)
        x = self.inward(self.embedding(targets))
        looks: list[Looks] = []
        for layer in self.layers:
            x, _, look = layer(x, memory=memory, memory_mask=keys, need_weights=need_weights)
            looks.append(look)
        cross = [look.memory for look in looks if look.memory is not None]
        own = [look.own for look in looks if look.own is not None]
        return Decoded(self.outward(self.norm(x)), cross, own)

    def step(self, tokens: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """The words [B] that went before -> features [B, E] of the next, and the state after it."""
        x = self.inward(self.embedding(tokens[:, None], offset=state.place))
        pasts: list[Cache] = []
        for layer, past, prepared in zip(self.layers, state.pasts, state.prepared, strict=True):
            x, after, _ = layer(x, past=past, prepared=prepared, memory_mask=state.mask)
            pasts.append(after)
        features = self.outward(self.norm(x))[:, 0]
        return features, replace(state, pasts=tuple(pasts), place=state.place + 1)

    @staticmethod
    def _attention(layer: nn.Module) -> Attention:
        assert isinstance(layer, Layer)
        assert layer.memory is not None
        return layer.memory
