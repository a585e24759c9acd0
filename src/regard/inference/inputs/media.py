"""Images and recordings as inputs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.batch import collate_sources
from regard.data.media.base import DecodedMedia, MediaProcessor
from regard.data.vocabulary import SourceInput
from regard.errors import RegardError
from regard.inference.inputs.base import constraints_from_options
from regard.inference.inputs.request import Request
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.results import Result
from regard.models.stems.image import ResidualStem
from regard.special_tokens import EOS
from regard.views.channel_attention import BlockAttention
from regard.views.notebook import AttentionView


class MediaInputs:
    """Images or recordings: a file's name, its bytes, or a Python object (a Pillow image, an array of pixels,
    (samples, rate))."""

    def __init__(self, run: LoadedRun) -> None:
        assert isinstance(run.source_processor, MediaProcessor)
        self.run, self.medium = run, run.source_processor

    def check(self, inputs: Sequence[Any]) -> None:
        """Files are read one by one, and each result has its own error."""

    def split_into_chunks(self, item: Any) -> list[tuple[str, bool]]:
        return []

    def split_at_placeholders(self, item: Any) -> list[tuple[str, bool]]:
        return []

    def requests(self, inputs: Sequence[Any], options: Options) -> list[Request]:
        return [self.request(each, options) for each in inputs]

    def request(self, item: Any, options: Options) -> Request:
        """One input, decoded."""
        constraints = constraints_from_options(self.run, options)
        if isinstance(item, DecodedMedia):
            return Request(item.name, item.array, constraints)
        name = str(item) if isinstance(item, str | Path) else f"one of the {self.medium.plural_name}"
        try:
            return Request(name, self.medium.read(item), constraints)
        except RegardError as error:
            return Request(name, [], error=str(error).removeprefix(f"{name}: ").rstrip("."))

    def length(self, tokens: SourceInput) -> int:
        """About how many positions it has; 0 for a file that could not be read."""
        return int(self.medium.position_counts(np.array([tokens.size], np.int32))[0]) + 1 if len(tokens) else 0

    @property
    def upload_suffixes(self) -> tuple[str, ...]:
        """Of files that can be uploaded."""
        return self.medium.suffixes

    def read_upload(self, content: bytes, name: str) -> DecodedMedia:
        """An uploaded file, decoded. Raises RegardError."""
        return DecodedMedia(self.medium.read(content), name)

    def upload_length(self, item: DecodedMedia) -> int:
        """Positions of an upload, which gradients are computed for."""
        return self.length(item.array)

    def originals(self, item: Any) -> tuple[str, ...]:
        return ()

    def source_and_target(
        self, source: Any, target: str | Result | None, to: str, predict: Callable[[Any], Result]
    ) -> tuple[SourceInput, list[int]]:
        """The array of a decoded file, and the tokens of its target."""
        request = self.request(source, Options(to=to) if to else Options())
        if request.error:
            raise RegardError(f"{request.text}: {request.error}.")
        if not isinstance(target, str):
            return request.tokens, (target or predict(DecodedMedia(request.tokens, request.text))).tokens
        self.run.target_vocabulary.check(target)
        target_tokens = [*request.constraints.prefix, *self.run.target_tokens(target)]
        return request.tokens, [*target_tokens, *([EOS] if self.run.target_vocabulary.has_eos else [])]

    def check_attribution(self) -> None:
        """Gradients can be taken of every file."""

    def add_source_media(self, view: AttentionView, item: Any) -> AttentionView:
        """With the recording itself, so that it can be played; unknown for an input that was decoded before."""
        if view.source_media is None or isinstance(item, DecodedMedia):
            return view
        return replace(view, source_media=replace(view.source_media, audio=self.wav_bytes(item)))

    def wav_bytes(self, item: Any) -> bytes:
        """A recording as a WAV file; empty for an image."""
        return self.medium.to_wav(item)

    def channel_attention(self, item: Any) -> list[BlockAttention]:
        """The weights of attention over channels and positions of an image, block by block. Raises RegardError."""
        stem = self.run.bundle.model.encoder.embedding
        if not isinstance(stem, ResidualStem):
            raise RegardError("only images that residual convolutions encode have attention over channels.")
        request = self.request(item, Options())
        if request.error:
            raise RegardError(f"{request.text}: {request.error}.")
        pixels, _ = collate_sources(self.medium, [request.tokens])
        weights = stem.channel_attention(pixels.to(next(stem.parameters()).device))
        if not weights:
            raise RegardError(
                "this model has no attention over channels; train with model.source.stem.channel_attention=cbam."
            )
        return [BlockAttention(**{name: each[0].cpu().numpy() for name, each in block.items()}) for block in weights]

    @property
    def example(self) -> DecodedMedia:
        """An input to warm up with."""
        return DecodedMedia(self.medium.example(), "")
