"""An encoder and a decoder, built from settings, with an output layer: from a source to logits of the target."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.copy_mechanism import CopyState, mix_copy_distribution
from regard.models.outputs import DecoderOutput, EncoderOutput, Packing, State
from regard.models.settings import ModelSettings
from regard.special_tokens import EOS


class Seq2Seq(nn.Module):
    """Any encoder with any decoder. Vocabulary entries 0 to 3 are the special tokens.

    source_vocabulary_size: 0 unless the source is text.
    """

    encoder: Any
    decoder: Any

    def __init__(self, settings: ModelSettings, *, source_vocabulary_size: int, target_vocabulary_size: int) -> None:
        super().__init__()
        self.settings = settings
        self.source_vocabulary_size, self.target_vocabulary_size = source_vocabulary_size, target_vocabulary_size
        stem = settings.source.build_stem(settings.encoder.stem_options(), source_vocabulary_size)
        self.encoder = settings.encoder.build(stem)
        memory_width = None if settings.source.is_empty else self.encoder.memory_width
        self.decoder = settings.decoder.build(target_vocabulary_size, memory_width)
        if not settings.decoder.has_output:
            return
        E = settings.decoder.embedding_width
        self.output = nn.Linear(E, target_vocabulary_size, bias=settings.tie == "none" or settings.output_bias)
        if self.output.bias is not None:
            nn.init.zeros_(self.output.bias)
        if settings.tie == "none":
            nn.init.normal_(self.output.weight, std=E**-0.5)
        elif settings.decoder.masked_lm:
            self.output.weight = self.encoder.embedding.weight
        else:
            self.output.weight = self.decoder.embedding.weight
        if settings.tie == "all" and not settings.decoder.masked_lm:
            if source_vocabulary_size != target_vocabulary_size:
                raise RegardError(
                    f"model.tie: all embeddings are shared, so source and target need one vocabulary, not "
                    f"{source_vocabulary_size} and {target_vocabulary_size} entries; "
                    "use joint subwords, or tie the target only."
                )
            self.encoder.embedding.weight = self.decoder.embedding.weight

    def encode(
        self, source: Tensor, mask: Tensor, *, packing: Packing | None = None, need_weights: bool = False
    ) -> EncoderOutput:
        """source [B, Ts], images or frames, and mask [B, Ts] (False at padding) -> EncoderOutput.

        packing: several texts in one row.
        """
        rows = {} if packing is None else {"packing": packing}
        memory: EncoderOutput = self.encoder(source, mask, **rows, need_weights=need_weights)
        return replace(memory, tokens=source) if self.settings.decoder.copies else memory

    def forward(self, source: Tensor, mask: Tensor, targets: Tensor, *, need_weights: bool = False) -> DecoderOutput:
        """source, mask [B, Ts], targets [B, Tt] (the previous token of each step) -> features."""
        memory = self.encode(source, mask, need_weights=need_weights)
        decoded: DecoderOutput = self.decoder(targets, memory, need_weights=need_weights)
        return replace(decoded, encoder_attention=memory.self_attention, source_lengths=memory.mask.sum(1))

    def logits(self, features: Tensor) -> Tensor:
        """features [..., E] -> [..., V]"""
        scores: Tensor = self.output(features)
        if not self.settings.decoder.predicts_tokens:
            scores[..., : EOS + 1] = -torch.inf  # special tokens are no labels
        return scores

    def scores(self, decoded: DecoderOutput, source: Tensor) -> Tensor:
        """Logits [B, Tt, V] of all steps over sources [B, Ts], copies included."""
        logits = self.logits(decoded.features)
        return logits if decoded.copy is None else mix_copy_distribution(logits, decoded.copy, source[:, None])

    def start(self, memory: EncoderOutput) -> State:
        """The decoder's state before the first token."""
        state: State = self.decoder.start(memory)
        return state if memory.tokens is None else CopyState(state, memory.tokens)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """The previous tokens [B] and a state -> logits [B, V] of the next, and the state after it."""
        if isinstance(state, CopyState):
            features, inner = self.decoder.step(tokens, state.state)
            return mix_copy_distribution(self.logits(features), inner.copy, state.tokens), replace(state, state=inner)
        features, state = self.decoder.step(tokens, state)
        return self.logits(features), state

    @property
    def size(self) -> int:
        """The number of parameters; shared ones count once."""
        return sum(parameter.numel() for parameter in self.parameters())
