"""The recurrent decoder, without attention and with it.

Symbols as in the papers: y the target tokens, s the decoder's state, h the memory, c the context.

- never:  s_t = f(y_{t-1}, s_{t-1}), s_0 from C, the source in one vector (Sutskever et al. 2014, arXiv:1409.3215);
          with context "every", s_t = f(y_{t-1}, s_{t-1}, C) (Cho et al. 2014, arXiv:1406.1078).
- before: c_t = attend(s_{t-1}, h), then s_t = f(y_{t-1}, s_{t-1}, c_t) (Bahdanau et al. 2014, arXiv:1409.0473).
          The output is their maxout layer over s_t, y_{t-1} and c_t (appendix A.2.2, with s_t as in section 3.1).
- after:  s_t = f(y_{t-1}, s_{t-1}), then c_t = attend(s_t, h) and tanh(W [c_t; s_t]), which with input feeding is also
          part of the next input (Luong et al. 2015, arXiv:1508.04025).

A gate may scale c_t by sigmoid(w s_{t-1}) (Xu et al. 2015, arXiv:1502.03044, section 4.2.1). With the copy
mechanism, p_gen = sigmoid(w [c_t; s_t; y_{t-1}]) is the probability of generating instead of copying (See et al. 2017,
arXiv:1704.04368, equation 8).
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.attention import Additive, Attention, Cache, Draw, Hard, Location
from regard.attention.extents import EXTENTS, Global
from regard.attention.normalizers import Normalizer, Softmax
from regard.attention.scores import SCORES, Score
from regard.models import fused_bahdanau
from regard.models.dropout import Dropout
from regard.models.outputs import CopyDistribution, DecoderOutput, EncoderOutput
from regard.models.recurrent_layers import Cell, initialize
from regard.models.token_embedding import Embedding

if TYPE_CHECKING:
    from regard.models.settings.decoders.recurrent import RecurrentDecoderSettings

Layers = tuple[tuple[Tensor, ...], ...]  # the state of each layer: (h,) for a GRU, (h, c) for an LSTM


@dataclass(frozen=True)
class RecurrentState:
    """Between steps: the layers' states, and the memory projected once for attention."""

    layers: Layers
    attentional: Tensor | None  # [B, D] the attentional vector, for input feeding
    context: Tensor | None  # [B, M] C, where it is fed at every step
    cache: Cache | None
    mask: Tensor  # [B, 1, 1, Ts]
    copy: CopyDistribution | None = None  # of the last step, with copy attention

    def select(self, index: Tensor, *, same_sources: bool = False) -> "RecurrentState":
        """The batch entries of this index."""

        def select(x: Tensor | None) -> Tensor | None:
            return None if x is None else x.index_select(0, index)

        layers = tuple(tuple(part.index_select(0, index) for part in layer) for layer in self.layers)
        if same_sources:
            cache = None if self.cache is None else self.cache.select_past_weights(index)
            return replace(self, layers=layers, attentional=select(self.attentional), cache=cache, copy=None)
        cache = None if self.cache is None else self.cache.select(index)
        return RecurrentState(
            layers, select(self.attentional), select(self.context), cache, self.mask.index_select(0, index)
        )


class RecurrentDecoder(nn.Module):
    """Targets and EncoderOutput -> features [B, T, E]."""

    def __init__(self, settings: "RecurrentDecoderSettings", vocabulary: int, memory_width: int) -> None:
        super().__init__()
        self.attend, self.width = settings.attend, settings.width
        self.input_feeding = settings.attend == "after" and settings.input_feeding
        self.context_every_step = settings.attend == "never" and settings.context == "every"
        width, E, M = settings.width, settings.embedding_width, memory_width
        self.embedding = Embedding(vocabulary, E, dropout=settings.dropout)
        self.dropout = Dropout(settings.dropout)
        self.initial_state = nn.Linear(M, settings.layers * width)
        widths = [E] + [width] * (settings.layers - 1)
        self.cells = nn.ModuleList(Cell(settings.cell, input_width, width) for input_width in widths)
        # The first layer's inputs other than the embedding: their product is added to the embedding's.
        extra_input = M if self.attend == "before" or self.context_every_step else width if self.input_feeding else 0
        gates = self._cell(0).inputs.out_features
        self.extra_input = nn.Linear(extra_input, gates, bias=False) if extra_input else None
        self.attention = self._attention(settings, M) if self.attend != "never" else None
        if self.attend == "after":
            self.combine = nn.Linear(M + width, width)
        self.gate = nn.Linear(width, 1) if settings.gate else None
        self.copy_gate = nn.Linear(M + width + E, 1) if settings.copy_mechanism else None
        self.readout: nn.Module
        if self.attend == "before" or self.context_every_step:
            self.readout = nn.Linear(width + E + M, 2 * E)  # maxout over two halves
        else:
            self.readout = nn.Linear(width, E) if width != E else nn.Identity()
        initialize(self, settings.initialization)

    @staticmethod
    def _attention(settings: "RecurrentDecoderSettings", memory_width: int) -> Attention:
        extent = EXTENTS.get(settings.extent).create(query_width=settings.width, heads=1, radius=settings.radius)
        normalize: str | Normalizer = settings.normalize
        if normalize == "hard":
            normalize = Hard(settings.estimator)
        score_class = SCORES.get(settings.score)
        hidden = settings.attention_width or settings.width
        score: str | Score = settings.score
        if score == "location":
            location_options = {
                "filters": settings.filters,
                "size": settings.filter_width,
                "coverage": settings.coverage,
            }
            score = Location(settings.width, memory_width, hidden, **location_options)  # type: ignore[arg-type]
        return Attention(
            settings.width,
            key_width=memory_width,
            head_width=hidden if score_class.hidden_layer else settings.width,
            score=score,
            extent=extent,
            normalize=normalize,
            # A dot product needs equal widths; the memory is projected only where they differ.
            project="" if score_class.projects or memory_width == settings.width else "k",
        )

    def _cell(self, layer: int) -> Cell:
        cell = self.cells[layer]
        assert isinstance(cell, Cell)
        return cell

    def start(self, memory: EncoderOutput) -> RecurrentState:
        """The state before the first token: s_0 = tanh(W C) in every layer."""
        first = torch.tanh(self.initial_state(memory.pooled)).chunk(len(self.cells), -1)
        layers: list[tuple[Tensor, ...]] = []
        for layer, s in enumerate(first):
            s = s.contiguous()  # noqa: PLW2901
            layers.append((s,) if self._cell(layer).kind == "gru" else (s, torch.zeros_like(s)))
        attentional = memory.states.new_zeros(len(memory.states), self.width) if self.input_feeding else None
        cache = None if self.attention is None else self.attention.prepare(memory.states, memory.values)
        context = memory.pooled if self.context_every_step else None
        return RecurrentState(tuple(layers), attentional, context, cache, memory.attention_mask)

    def forward(self, targets: Tensor, memory: EncoderOutput, *, need_weights: bool = False) -> DecoderOutput:
        """targets [B, T], the previous token of each step -> features of all steps."""
        y = self.embedding(targets)  # [B, T, E]
        state = self.start(memory)
        if self._can_use_fused(state):
            return self._fused(y, state, need_weights)
        if self.attend == "before" or self.input_feeding:
            return self._step_by_step(y, state, need_weights)
        need_attention = need_weights or self.copy_gate is not None
        # No context is fed back into the states: all steps of a layer at once.
        x = y.transpose(0, 1)
        for layer, first in enumerate(state.layers):
            cell = self._cell(layer)
            if layer:
                x = self.dropout(x)
            gates = cell.inputs(x)
            if layer == 0 and self.extra_input is not None:
                gates = gates + self.extra_input(memory.pooled)
            x = cell.sequence(gates, first)
        s = x.transpose(0, 1)  # [B, T, D]
        if self.attention is None:
            c = memory.pooled[:, None].expand(-1, s.shape[1], -1)
            return DecoderOutput(self._features(s, y, c))
        attended = self.attention(
            s, cache=state.cache, mask=state.mask, need_weights=self._needs_weights(need_attention)
        )
        features, w = self._features(s, y, attended.output), attended.weights
        cross = [w] if need_weights and w is not None else []
        draws = [attended.draw] if attended.draw is not None else []
        copy = self._copy(s, y, attended.output, None if w is None else w[:, 0])
        return DecoderOutput(features, cross, draws=draws, copy=copy)

    def step(self, tokens: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """The previous tokens [B] -> features [B, E] of the next token, and the state after it."""
        y = self.embedding(tokens[:, None])[:, 0]
        s, c, state, w, _ = self._advance(self._cell(0).inputs(y), state, need_weights=self.copy_gate is not None)
        if w is not None:
            state = replace(state, copy=self._copy(s, y, c, w[:, 0, 0]))
        return self._features(s, y, c, state.attentional), state

    def _copy(self, s: Tensor, y: Tensor, c: Tensor, w: Tensor | None) -> CopyDistribution | None:
        """The copy distribution after s_t, y_{t-1} and c_t, from attention weights [..., Ts]."""
        return (
            None
            if self.copy_gate is None or w is None
            else CopyDistribution(w, self.copy_gate(torch.cat([c, s, y], -1))[..., 0])
        )

    def _needs_weights(self, need_weights: bool) -> bool:
        assert self.attention is not None
        learns_from_draws = (
            isinstance(self.attention.normalizer, Hard) and self.attention.normalizer.estimator == "reinforce"
        )
        return need_weights or (self.training and learns_from_draws)

    def _can_use_fused(self, state: RecurrentState) -> bool:
        """Whether this is the decoder of Bahdanau et al. itself, for which there is a fused kernel."""
        attention, cache = self.attention, state.cache
        if self.attend != "before" or len(self.cells) > 1 or attention is None or cache is None:
            return False
        if self.gate is not None:
            return False
        is_plain = isinstance(attention.extent, Global) and isinstance(attention.normalizer, Softmax)
        keys, values = cache.key_values
        return is_plain and fused_bahdanau.is_supported(attention, keys[:, 0], values[:, 0])

    def _fused(self, y: Tensor, state: RecurrentState, need_weights: bool) -> DecoderOutput:
        assert self.attention is not None
        assert self.extra_input is not None
        assert state.cache is not None
        score = self.attention.score
        assert isinstance(score, Additive)
        cell, (keys, values) = self._cell(0), state.cache.key_values
        gates, mask = cell.inputs(y.transpose(0, 1)), state.mask[:, 0, 0]
        s, c, w = fused_bahdanau.decode(
            gates, state.layers[0], cell, self.extra_input.weight, score, keys[:, 0], values[:, 0], mask
        )
        s, c, w = s.transpose(0, 1), c.transpose(0, 1), w.transpose(0, 1)
        features = self._features(s, y, c)
        return DecoderOutput(features, [w[:, None]] if need_weights else [], copy=self._copy(s, y, c, w))

    def _step_by_step(self, y: Tensor, state: RecurrentState, need_weights: bool) -> DecoderOutput:
        # The embeddings' part of the gates, for all steps at once; unbound, because gradients of single rows are slow.
        gates = self._cell(0).inputs(y.transpose(0, 1)).unbind(0)
        states, contexts, attentional = [], [], []
        weights: list[Tensor] = []
        draws: list[Draw] = []
        for gate in gates:
            s, c, state, w, draw = self._advance(gate, state, need_weights or self.copy_gate is not None)
            states.append(s)
            contexts.append(c)
            if state.attentional is not None:
                attentional.append(state.attentional)
            if w is not None:
                weights.append(w)
            if draw is not None:
                draws.append(draw)
        s, c = torch.stack(states, 1), torch.stack(contexts, 1)
        features = self._features(s, y, c, torch.stack(attentional, 1) if attentional else None)
        cross = [torch.cat(weights, 2)] if weights else []
        copy = self._copy(s, y, c, cross[0][:, 0] if cross else None)
        return DecoderOutput(features, cross if need_weights else [], draws=draws, copy=copy)

    def _advance(
        self, gates: Tensor, state: RecurrentState, need_weights: bool
    ) -> tuple[Tensor, Tensor, RecurrentState, Tensor | None, Draw | None]:
        """One step from the embedding's part of the first layer's gates: (s_t, c_t, state, weights, draw)."""
        w = draw = None
        c: Tensor | None = state.context
        cache = state.cache
        if self.attend == "before":
            c, cache, w, draw = self._attend(state.layers[-1][0], state, need_weights)
            if self.gate is not None:
                c = c * torch.sigmoid(self.gate(state.layers[-1][0]))
        extra_input = c if self.attend != "after" else state.attentional
        if self.extra_input is not None and extra_input is not None:
            gates = gates + self.extra_input(extra_input)
        layers: list[tuple[Tensor, ...]] = []
        for layer, previous in enumerate(state.layers):
            if layer:
                gates = self._cell(layer).inputs(self.dropout(layers[-1][0]))
            layers.append(self._cell(layer).step(gates, previous))
        s = layers[-1][0]
        state = replace(state, layers=tuple(layers), cache=cache)
        if self.attend == "after":
            c, cache, w, draw = self._attend(s, state, need_weights)
            attentional = torch.tanh(self.combine(torch.cat([c, s], -1))) if self.input_feeding else None
            state = replace(state, cache=cache, attentional=attentional)
        return s, s if c is None else c, state, w if need_weights else None, draw

    def _attend(
        self, query: Tensor, state: RecurrentState, need_weights: bool
    ) -> tuple[Tensor, Cache | None, Tensor | None, Draw | None]:
        assert self.attention is not None
        attended = self.attention(
            query[:, None], cache=state.cache, mask=state.mask, need_weights=self._needs_weights(need_weights)
        )
        return attended.output[:, 0], attended.cache, attended.weights, attended.draw

    def _features(self, s: Tensor, y: Tensor, c: Tensor, attentional: Tensor | None = None) -> Tensor:
        """The input of the output layer, [..., E]."""
        if self.attend == "before" or self.context_every_step:
            maxout: Tensor = self.dropout(torch.maximum(*self.readout(torch.cat([s, y, c], -1)).chunk(2, -1)))
            return maxout
        if self.attend == "after":
            s = torch.tanh(self.combine(torch.cat([c, s], -1))) if attentional is None else attentional
        features: Tensor = self.readout(self.dropout(s))
        return features
