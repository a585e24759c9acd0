"""Texts in parts that are translated one by one and put back: around placeholders that a model does not know, and where
a text is longer than it reads.

This keeps every placeholder where it was, whatever the model makes of the words; the words lose sight of each other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from regard.inference.results import Result

FULL_STOP = re.compile(r"\s*[.。]$")
ENDED = re.compile(r"[.!?…:;。！？؟।۔]\W*$")


@dataclass(frozen=True)
class Pieces:
    """A text in parts; those of `words` are to be translated, without the blanks around them."""

    text: str
    parts: tuple[str, ...]
    words: tuple[int, ...]

    @staticmethod
    def of(text: str, parts: Sequence[tuple[str, bool]]) -> "Pieces":
        """From parts of which each is kept, or is text. Signs alone stay."""
        words = [number for number, (part, kept) in enumerate(parts) if not kept and any(map(str.isalnum, part))]
        return Pieces(text, tuple(part for part, _ in parts), tuple(words))

    @property
    def sources(self) -> list[str]:
        """What is to be translated."""
        return [self.parts[number].strip() for number in self.words]

    def joined(self, results: Sequence[Result]) -> Result:
        """The whole again, from a result for each of the sources."""
        parts = list(self.parts)
        for number, result in zip(self.words, results, strict=True):
            part = parts[number]
            before = part[: len(part) - len(part.lstrip())]
            after = part[len(part.rstrip()) :]
            parts[number] = before + _without_end(result.text, part) + after
        error = next((result.error for result in results if result.error), "")
        missing = [each for result in results for each in result.missing]
        score = sum(result.score for result in results) / max(1, len(results))
        return Result(
            self.text, "" if error else "".join(parts), score, [], [], parts=len(results), missing=missing, error=error
        )


def _without_end(said: str, source: str) -> str:
    """Without a full stop that the source has not: models like to end what they say."""
    return said if ENDED.search(source) else FULL_STOP.sub("", said)


def words_only(parts: Sequence[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """The same parts, with those between placeholders that have no letter kept, too: 5 stays 5."""
    return [(part, kept or not any(map(str.isalpha, part))) for part, kept in parts]
