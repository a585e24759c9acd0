"""Settings of a whole model. Imports no PyTorch."""

from typing import Annotated, Literal

from pydantic import SerializeAsAny, model_validator

from regard.errors import RegardError
from regard.models.settings.components import (
    DECODERS,
    ENCODERS,
    SOURCES,
    DecoderSettings,
    EncoderSettings,
    SourceSettings,
)
from regard.models.settings.decoders.transformer import TransformerDecoderSettings
from regard.models.settings.encoders.transformer import TransformerEncoderSettings
from regard.models.settings.sources.text import TextSource
from regard.settings import Settings, by_kind

Architecture = Literal["encoder", "decoder", "encoder-decoder"]


class ModelSettings(Settings):
    """What is read, an encoder, a decoder, and which embeddings they share."""

    source: Annotated[SerializeAsAny[SourceSettings], by_kind(SOURCES, default="text")] = TextSource()
    encoder: Annotated[SerializeAsAny[EncoderSettings], by_kind(ENCODERS)] = TransformerEncoderSettings()
    decoder: Annotated[SerializeAsAny[DecoderSettings], by_kind(DECODERS)] = TransformerDecoderSettings()
    tie: Literal["none", "target", "all"] = "target"  # target: the target's embedding is the output layer
    output_bias: bool = False  # of an output layer that is an embedding; one that is not always has one

    @property
    def architecture(self) -> Architecture:
        """An encoder alone, a decoder alone, or both."""
        if self.source.is_empty:
            return "decoder"
        return "encoder-decoder" if self.decoder.autoregressive else "encoder"

    @property
    def aligns(self) -> bool:
        """Whether the tokens that it predicts come from tokens of the source."""
        return self.decoder.autoregressive and self.source.is_text and not self.source.reads_sentences

    @model_validator(mode="after")
    def _check_source(self) -> "ModelSettings":
        source, encoder, decoder = self.source, self.encoder, self.decoder
        if source.is_empty and not (encoder.is_identity and decoder.works_without_source):
            raise RegardError("source is none: that is for a transformer decoder alone; set encoder.kind to none")
        if not source.is_text:
            if decoder.copies:
                raise RegardError(f"decoder.copy_mechanism: there are no tokens to copy in {source.description}")
            if self.tie == "all":
                raise RegardError(f"tie is all, but {source.description} have no embeddings to share; tie the target")
        if not decoder.predicts_tokens and self.tie != "none":
            raise RegardError("tie: only tokens have embeddings to share; set it to none")
        if decoder.per_position and not (source.is_text and not encoder.is_identity):
            raise RegardError(f"decoder.kind: {decoder.kind} is for text that an encoder reads")
        if decoder.predicts_spans and not (source.starts_with_bos and source.segments_of_text > 1):
            raise RegardError(
                "decoder.kind: a span is of a passage with a question; set source.bos to true and source.segments to 2"
            )
        if decoder.masked_lm and not isinstance(encoder, TransformerEncoderSettings):
            raise RegardError(f"decoder.kind: {decoder.kind} is for a transformer encoder")
        if decoder.masked_lm and self.tie == "target":
            raise RegardError("tie: masked tokens are source tokens; set it to all, or to none")
        if source.reads_sentences:
            if decoder.copies:
                raise RegardError("decoder.copy_mechanism: there are no tokens to copy where source.unit is sentence")
            if decoder.per_position:
                raise RegardError(f"decoder.kind: {decoder.kind} predicts for tokens; set source.unit to token")
        if self.output_bias and self.tie == "none":
            raise RegardError("output_bias: an output layer that is no embedding has one anyway; leave it out")
        if getattr(encoder, "pyramid", False) and source.is_text:
            raise RegardError("encoder.pyramid is for audio: it joins several frames")
        return self

    @model_validator(mode="after")
    def _check_tied_widths(self) -> "ModelSettings":
        if self.tie == "all" and self.encoder.embedding_width != self.decoder.embedding_width:
            raise RegardError(
                f"tie is all, but the encoder's embeddings are {self.encoder.embedding_width} wide and the decoder's "
                f"{self.decoder.embedding_width}; make them equal, or tie the target only"
            )
        return self
