"""The Transformer's layer, for encoders and decoders.

Vaswani et al. 2017 (arXiv:1706.03762). The norm comes after each sum as published (post-norm), or before each
sublayer as in Xiong et al. 2020 (arXiv:2002.04745, pre-norm), which trains more easily. RMSNorm: Zhang and Sennrich
2019 (arXiv:1910.07467). Gated feed-forward layers: Shazeer 2020 (arXiv:2002.05202).
"""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention import T5, Attention, Cache, Hard, Window
from regard.attention.extents import Extent
from regard.attention.normalizers import Normalizer
from regard.attention.positions.base import embeds_positions
from regard.models.dropout import Dropout
from regard.models.outputs import EncoderOutput
from regard.models.token_embedding import Embedding

if TYPE_CHECKING:
    from regard.models.settings._shared import TransformerSettings


def build_embedding(settings: "TransformerSettings", vocabulary: int) -> Embedding:
    """A decoder's token embeddings."""
    return Embedding.from_options(vocabulary, settings.stem_options())


GATED = {"swiglu": "silu", "geglu": "gelu"}


def apply_activation(name: str, x: Tensor) -> Tensor:
    """The activation function of this name, applied to each element."""
    if name in ("gelu", "gelu-tanh"):
        return nn.functional.gelu(x, approximate="tanh" if name == "gelu-tanh" else "none")
    return {"relu": torch.relu, "silu": nn.functional.silu, "tanh": torch.tanh}[name](x)


class FeedForward(nn.Module):
    """W2 f(W1 x), or W2 (f(W1 x) * W3 x) where the activation is gated."""

    def __init__(self, settings: "TransformerSettings") -> None:
        super().__init__()
        self.activation = settings.activation
        self.inner = nn.Linear(settings.width, settings.feedforward * (2 if settings.activation in GATED else 1))
        self.outer = nn.Linear(settings.feedforward, settings.width)
        self.dropout = Dropout(settings.activation_dropout)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., D] -> [..., D]"""
        x = self.inner(x)
        if self.activation == "relu":
            x = self.dropout.relu(x)
        else:
            if self.activation in GATED:
                gate, x = x.chunk(2, -1)
                x = x * apply_activation(GATED[self.activation], gate)
            else:
                x = apply_activation(self.activation, x)
            x = self.dropout(x)
        out: Tensor = self.outer(x)
        return out


class LayerAttention(NamedTuple):
    """Attention weights of one layer, with need_weights."""

    self_attention: Tensor | None  # [B, H, T, T]
    cross_attention: Tensor | None  # [B, H, T, Ts]


class TransformerLayer(nn.Module):
    """Self-attention, cross-attention if there is a memory, feed-forward; each with its residual and norm."""

    def __init__(self, settings: "TransformerSettings", *, causal: bool, memory_width: int | None = None) -> None:
        super().__init__()
        self.pre_norm = settings.norm_first
        extent: str | Extent = "causal" if causal else "global"
        if settings.window is not None:
            extent = Window(settings.window, causal=causal)
        is_inside = settings.position != "none" and not embeds_positions(settings.position)
        position = settings.position if is_inside else None
        # REINFORCE would need each layer's draws; the straight-through estimator needs nothing.
        normalize: str | Normalizer = Hard("gumbel") if settings.normalize == "hard" else settings.normalize
        self.self_attention = Attention(
            settings.width,
            heads=settings.heads,
            extent=extent,
            normalize=normalize,
            position=T5(settings.heads, bidirectional=not causal) if position == "t5" else position,
            dropout=settings.attention_dropout,
        )
        self.self_attention_norm = settings.build_norm(settings.width)
        self.cross_attention: Attention | None = None
        if memory_width is not None:
            self.cross_attention = Attention(
                settings.width,
                heads=settings.heads,
                key_width=memory_width,
                normalize=normalize,
                dropout=settings.attention_dropout,
            )
            self.cross_attention_norm = settings.build_norm(settings.width)
        self.feedforward = FeedForward(settings)
        self.feedforward_norm = settings.build_norm(settings.width)
        self.dropout = Dropout(settings.dropout)

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        memory: EncoderOutput | None = None,
        memory_mask: Tensor | None = None,
        past: Cache | None = None,
        prepared: Cache | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Cache | None, LayerAttention]:
        """x [B, T, D] -> the same, the cache of its keys and values, and with need_weights the attention weights.

        mask: of self-attention. memory: the encoder's output, as it is or `prepared` by `cross_attention.prepare`.
        past: the cache of what precedes x.
        """
        query = self.self_attention_norm(x) if self.pre_norm else x
        attended = self.self_attention(query, mask=mask, cache=past, need_weights=need_weights)
        x = self._add_residual(attended.output, x, self.self_attention_norm)
        weights = None
        if self.cross_attention is not None:
            query = self.cross_attention_norm(x) if self.pre_norm else x
            states = (None, None) if memory is None else (memory.states, memory.values)
            attended_memory = self.cross_attention(
                query, *states, cache=prepared, mask=memory_mask, need_weights=need_weights
            )
            weights = attended_memory.weights
            x = self._add_residual(attended_memory.output, x, self.cross_attention_norm)
        inner = self.feedforward(self.feedforward_norm(x) if self.pre_norm else x)
        return (
            self._add_residual(inner, x, self.feedforward_norm),
            attended.cache,
            LayerAttention(attended.weights, weights),
        )

    def _add_residual(self, sublayer_output: Tensor, x: Tensor, norm: nn.Module) -> Tensor:
        total = self.dropout.add(sublayer_output, x)
        return total if self.pre_norm else norm(total)


def build_layers(settings: "TransformerSettings", *, causal: bool, memory_width: int | None = None) -> nn.ModuleList:
    """All layers; with shared weights one layer repeated, as in the Universal Transformer (Dehghani et al. 2018,
    arXiv:1807.03819)."""
    layers = [TransformerLayer(settings, causal=causal, memory_width=memory_width)]
    while len(layers) < settings.layers:
        layers.append(
            layers[0] if settings.share_layers else TransformerLayer(settings, causal=causal, memory_width=memory_width)
        )
    return nn.ModuleList(layers)


def depth_embedding(settings: "TransformerSettings") -> nn.Parameter | None:
    """With shared layers, an embedding [layers, D] of the depth, added to each layer's input."""
    if not settings.share_layers:
        return None
    return nn.Parameter(torch.randn(settings.layers, settings.width) * settings.width**-0.5)


def padding_mask(mask: Tensor) -> Tensor | None:
    """[B, T] -> [B, 1, 1, T], or None without padding: attention without a mask is faster."""
    return None if bool(mask.all()) else mask[:, None, None]
