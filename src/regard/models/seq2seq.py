"""An encoder and a decoder, made from settings, with an output layer: from source tokens to target logits."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.copy_mechanism import CopyState, mix_copy_distribution
from regard.models.decoders.convolutional import ConvolutionalDecoder
from regard.models.decoders.recurrent import RecurrentDecoder
from regard.models.decoders.transformer import TransformerDecoder
from regard.models.encoders.convolutional import ConvolutionalEncoder
from regard.models.encoders.identity import PlainEncoder
from regard.models.encoders.recurrent import RecurrentEncoder
from regard.models.encoders.transformer import TransformerEncoder
from regard.models.heads.per_position import NoDecoder, PlacesDecoder
from regard.models.heads.pooling import PoolingDecoder
from regard.models.outputs import DecoderOutput, EncoderOutput, Packing, State
from regard.models.settings import ModelSettings
from regard.special_tokens import END

ENCODERS: dict[str, Any] = {
    "recurrent": RecurrentEncoder,
    "convolutional": ConvolutionalEncoder,
    "transformer": TransformerEncoder,
    "none": PlainEncoder,
}
DECODERS: dict[str, Any] = {
    "recurrent": RecurrentDecoder,
    "convolutional": ConvolutionalDecoder,
    "transformer": TransformerDecoder,
    "pooling": PoolingDecoder,
    "places": PlacesDecoder,
    "none": NoDecoder,
}


class Seq2Seq(nn.Module):
    """Any encoder with any decoder. Vocabulary entries 0 to 3 are padding, unknown, beginning and end.

    source_vocabulary: 0 where the source is no text.
    """

    def __init__(self, settings: ModelSettings, *, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        self.settings = settings
        self.source_vocabulary, self.target_vocabulary = source_vocabulary, target_vocabulary
        self.encoder = ENCODERS[settings.encoder.kind](settings.encoder, source_vocabulary, settings.source)
        memory_width = None if settings.source.kind == "nothing" else self.encoder.memory_width
        self.decoder = DECODERS[settings.decoder.kind](settings.decoder, target_vocabulary, memory_width)
        if settings.decoder.kind == "none":
            return
        E = settings.decoder.embedding_width
        self.output = nn.Linear(E, target_vocabulary, bias=settings.tie == "none" or settings.output_bias)
        if self.output.bias is not None:
            nn.init.zeros_(self.output.bias)
        if settings.tie == "none":
            nn.init.normal_(self.output.weight, std=E**-0.5)
        elif settings.guesses:
            self.output.weight = self.encoder.embedding.weight
        else:
            self.output.weight = self.decoder.embedding.weight
        if settings.tie == "all" and not settings.guesses:
            if source_vocabulary != target_vocabulary:
                raise RegardError(
                    f"model.tie: all embeddings are shared, so source and target need one vocabulary, not "
                    f"{source_vocabulary} and {target_vocabulary} entries; use joint subwords, or tie the target only."
                )
            self.encoder.embedding.weight = self.decoder.embedding.weight

    def encode(
        self, source: Tensor, mask: Tensor, *, packing: Packing | None = None, need_weights: bool = False
    ) -> EncoderOutput:
        """source [B, Ts], pictures or frames, and mask [B, Ts] (True where there is something) -> EncoderOutput.

        packing: of sources that share rows.
        """
        rows = {} if packing is None else {"packing": packing}
        memory: EncoderOutput = self.encoder(source, mask, **rows, need_weights=need_weights)
        return replace(memory, tokens=source) if self.settings.copies else memory

    def forward(self, source: Tensor, mask: Tensor, targets: Tensor, *, need_weights: bool = False) -> DecoderOutput:
        """source, mask [B, Ts], targets [B, Tt] (the words before each step, beginning first) -> features."""
        memory = self.encode(source, mask, need_weights=need_weights)
        decoded: DecoderOutput = self.decoder(targets, memory, need_weights=need_weights)
        return replace(decoded, encoder_attention=memory.self_attention, source_lengths=memory.mask.sum(1))

    def logits(self, features: Tensor) -> Tensor:
        """features [..., E] -> [..., V]"""
        scores: Tensor = self.output(features)
        if self.settings.says != "text":
            scores[..., : END + 1] = -torch.inf  # the special entries are no classes
        return scores

    def scores(self, decoded: DecoderOutput, source: Tensor) -> Tensor:
        """Logits [B, Tt, V] of all steps over sources [B, Ts], copies included."""
        logits = self.logits(decoded.features)
        return logits if decoded.copy is None else mix_copy_distribution(logits, decoded.copy, source[:, None])

    def start(self, memory: EncoderOutput) -> State:
        """The decoder's state before the first word."""
        state: State = self.decoder.start(memory)
        return state if memory.tokens is None else CopyState(state, memory.tokens)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """The words before [B] and a state -> logits [B, V] of the next word, and the state after it."""
        if isinstance(state, CopyState):
            features, inner = self.decoder.step(tokens, state.state)
            return mix_copy_distribution(self.logits(features), inner.copy, state.tokens), replace(state, state=inner)
        features, state = self.decoder.step(tokens, state)
        return self.logits(features), state

    @property
    def size(self) -> int:
        """How many numbers are learnt; shared ones count once."""
        return sum(parameter.numel() for parameter in self.parameters())
