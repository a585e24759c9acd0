"""Pictures and recordings in, results out: a translator whose sources are files."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.batching import given
from regard.data.labels import Labels
from regard.data.media import Medium, Prepared, Recordings
from regard.data.vocabulary import Given
from regard.errors import RegardError
from regard.inference.attention import captured_view
from regard.inference.options import Options
from regard.inference.requests import Asked
from regard.inference.results import Result
from regard.inference.translator import Translator
from regard.interpret.attribution import attributed
from regard.interpret.forced_pass import forced
from regard.models.stems.images import Cells
from regard.special_tokens import END
from regard.views.channel_attention import Passed
from regard.views.notebook import CapturedView


class MediaTranslator(Translator):
    """A model of pictures or recordings. A source is a file's name, its bytes, or what Python has of it: a Pillow
    image, an array of pixels, (samples, rate)."""

    def translate(self, texts: Any, options: Options | None = None, **more: Any) -> Any:
        """A list of sources -> a list of results; an iterator -> results one by one; anything else is one source."""
        chosen = Options.of(more) if options is None else replace(options, **more)
        if isinstance(texts, io.IOBase):
            texts = texts.read()
        if isinstance(texts, Iterator):
            return self._stream(texts, chosen)
        found = self.results(texts if isinstance(texts, list) else [texts], chosen)
        return found if isinstance(texts, list) else found[0]

    def attend(
        self, source: Any, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> CapturedView:
        """What the model attends to over a source and a target: a given one, a result of it, or else its own.

        attribution: with gradient times input beside it, over the same places. Raises RegardError."""
        options = Options(to=to)
        asked = self._asked(source, options)
        if asked.wrong:
            raise RegardError(f"{asked.text}: {asked.wrong}.")
        if isinstance(target, str):
            if isinstance(self.target_side, Labels):
                self.target_side.check(target)
            said = [*asked.wish.prefix, *self.target_tokens(target)]
            tokens = [*said, *([END] if self.target_side.ends else [])]
        else:
            tokens = (target or self.results([Prepared(asked.tokens, asked.text)], options)[0]).tokens
        told = forced(self.bundle, [asked.tokens], [tokens])[0]
        sides = self.source_side, self.target_side
        gradients = attributed(self.bundle, asked.tokens, tokens) if attribution else None
        seen = captured_view(sides, (asked.tokens, tokens), told.weights, choice=self.choice, attribution=gradients)
        return self._heard(seen, source)

    def results(self, texts: Sequence[Any], options: Options, **more: Any) -> list[Result]:
        """A result for each source, in order."""
        found = super().results(texts, options, **more)
        return [
            replace(result, attention=self._heard(result.attention, source)) if result.attention is not None else result
            for result, source in zip(found, texts, strict=True)
        ]

    def _heard(self, seen: CapturedView, source: Any) -> CapturedView:
        """With the recording itself, so that it can be played; of what was prepared that is not known any more."""
        if seen.shown is None or isinstance(source, Prepared):
            return seen
        return replace(seen, shown=replace(seen.shown, sound=self.sound(source)))

    def passed(self, source: Any) -> list[Passed]:
        """What attention over channels and places lets pass of a picture, block by block. Raises RegardError."""
        stem = self.bundle.model.encoder.embedding
        if not isinstance(stem, Cells):
            raise RegardError("only pictures that are read by residual convolutions have channels to look at.")
        asked = self._asked(source, Options())
        if asked.wrong:
            raise RegardError(f"{asked.text}: {asked.wrong}.")
        pixels, _ = given(self.medium, [asked.tokens])
        looks = stem.looks(pixels.to(next(stem.parameters()).device))
        if not looks:
            raise RegardError("this model has no attention over channels; train with model.source.cut.attend=cbam.")
        return [Passed(**{name: each[0].cpu().numpy() for name, each in look.items()}) for look in looks]

    def sound(self, source: Any) -> bytes:
        """A recording as a WAV file; nothing of a picture."""
        return self.medium.sound(source) if isinstance(self.medium, Recordings) else b""

    @property
    def example(self) -> Prepared:
        """Something to read before there is anything: a grey picture, a second of silence."""
        if isinstance(self.medium, Recordings):
            rate = self.medium.settings.rate
            return Prepared(
                self.medium.read(np.zeros(int(min(1.0, self.medium.settings.longest) * rate), np.float32)), ""
            )
        return Prepared(self.medium.read(np.full((64, 64), 128, np.uint8)), "")

    @property
    def medium(self) -> Medium:
        """What it reads."""
        assert isinstance(self.source_side, Medium)
        return self.source_side

    def check_given(self, sources: Sequence[Any]) -> None:
        """Files are looked at one by one, and each has its own mistake told."""

    def fits(self, text: str) -> bool:
        """A file is read or refused as a whole."""
        return True

    def length(self, source: Given) -> int:
        """In places about; 0 for what could not be read."""
        return int(self.medium.places(np.array([source.size], np.int32))[0]) + 1 if len(source) else 0

    def originals_in(self, source: str) -> tuple[str, ...]:
        """A file has no placeholders."""
        return ()

    def _parts(self, text: str) -> list[tuple[str, bool]]:
        return []

    def _sources(self, texts: Sequence[Any], options: Options) -> list[Asked]:
        return [self._asked(source, options) for source in texts]

    def _asked(self, source: Any, options: Options) -> Asked:
        if isinstance(source, Prepared):
            return Asked(source.name, source.array, self._wish(options))
        name = str(source) if isinstance(source, str | Path) else f"one of the {self.medium.what}"
        wish = self._wish(options)
        try:
            return Asked(name, self.medium.read(source), wish)
        except RegardError as error:
            return Asked(name, [], wrong=str(error).removeprefix(f"{name}: ").rstrip("."))
