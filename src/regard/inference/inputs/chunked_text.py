"""Texts that are split into chunks, which are translated one by one and joined again: at placeholders that a model does
not know, and where a text is longer than the model's maximum length.

Every placeholder stays where it was, whatever the model predicts; but a chunk is translated without its context.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from regard.inference.results import Result

FULL_STOP = re.compile(r"\s*[.。]$")
SENTENCE_END = re.compile(r"[.!?…:;。！？؟।۔]\W*$")


@dataclass(frozen=True)
class ChunkedText:
    """A text in chunks; those at the indices `translated` are translated, without surrounding whitespace."""

    text: str
    chunks: tuple[str, ...]
    translated: tuple[int, ...]

    @staticmethod
    def from_chunks(text: str, chunks: Sequence[tuple[str, bool]]) -> "ChunkedText":
        """From chunks, each with whether it is copied. Chunks without a letter or digit are copied, too."""
        indices = [n for n, (chunk, copied) in enumerate(chunks) if not copied and any(map(str.isalnum, chunk))]
        return ChunkedText(text, tuple(chunk for chunk, _ in chunks), tuple(indices))

    @property
    def sources(self) -> list[str]:
        """What is to be translated."""
        return [self.chunks[number].strip() for number in self.translated]

    def join(self, results: Sequence[Result]) -> Result:
        """One result for the whole text, from a result for each of the sources."""
        chunks = list(self.chunks)
        for number, result in zip(self.translated, results, strict=True):
            chunk = chunks[number]
            before = chunk[: len(chunk) - len(chunk.lstrip())]
            after = chunk[len(chunk.rstrip()) :]
            chunks[number] = before + _strip_added_full_stop(result.text, chunk) + after
        error = next((result.error for result in results if result.error), "")
        missing = [each for result in results for each in result.missing]
        score = sum(result.score for result in results) / max(1, len(results))
        text = "" if error else "".join(chunks)
        return Result(self.text, text, score, [], [], chunk_count=len(results), missing=missing, error=error)


def _strip_added_full_stop(output: str, source: str) -> str:
    """Without a final full stop that the source does not have: models tend to add one."""
    return output if SENTENCE_END.search(source) else FULL_STOP.sub("", output)


def copy_non_words(chunks: Sequence[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """The same chunks; those between placeholders that have no letter are copied, too: 5 stays 5."""
    return [(chunk, copied or not any(map(str.isalpha, chunk))) for chunk, copied in chunks]
