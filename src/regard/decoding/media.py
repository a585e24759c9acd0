"""Pictures and recordings in, results out: a translator whose sources are files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.media import Medium, Prepared
from regard.data.sides import Given
from regard.decoding.asked import Asked
from regard.decoding.options import Options
from regard.decoding.translator import Translator


class MediaTranslator(Translator):
    """A model of pictures or recordings. A source is a file's name, its bytes, or what Python has of it: a Pillow
    image, an array of pixels, (samples, rate)."""

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

    def length(self, given: Given) -> int:
        """In places about; 0 for what could not be read."""
        return int(self.medium.places(np.array([given.size], np.int32))[0]) + 1 if len(given) else 0

    def originals_in(self, source: str) -> tuple[str, ...]:
        """A file has no placeholders."""
        return ()

    def _parts(self, text: str) -> list[tuple[str, bool]]:
        return []

    def _sources(self, texts: Sequence[Any], options: Options) -> list[Asked]:
        return [self._asked(given, options) for given in texts]

    def _asked(self, given: Any, options: Options) -> Asked:
        if isinstance(given, Prepared):
            return Asked(given.name, given.array, self._wish(options))
        name = str(given) if isinstance(given, str | Path) else f"one of the {self.medium.what}"
        try:
            return Asked(name, self.medium.read(given), self._wish(options))
        except ValueError as error:
            return Asked(name, [], wrong=str(error).removeprefix(f"{name}: ").rstrip("."))
