"""Training examples, and where their source and target are in a file."""

from dataclasses import dataclass
from typing import Any

from regard.data.segments import SEGMENT_SEPARATOR
from regard.data.settings import Column


@dataclass(frozen=True)
class Example:
    """A source, its target and where they come from. problem: why it cannot be used, if a reader found a reason."""

    source: str
    target: str
    file: str
    line: int
    problem: str = ""
    links: tuple[tuple[int, int], ...] = ()  # pairs of source and target words, counted from 0, if known
    content: Any = None  # the pixels of an image that has no file of its own
    occurrence: int = 0  # of a target that is a span of its source: which occurrence, counted from 0


@dataclass(frozen=True)
class Layout:
    """Where source and target are in a file that has both."""

    source_language: str | None = None
    target_language: str | None = None
    source_column: Column | None = None
    target_column: Column | None = None
    question_column: Column | None = None  # appended to the source after a separator


def append_question(source: str, question: str) -> str:
    """A source and a question about it, with a separator between."""
    return f"{source}{SEGMENT_SEPARATOR}{question}" if question.strip() else source
