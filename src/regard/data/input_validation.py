"""Every example is checked once, before training; the rejected ones are written to a file and counted."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from regard.data.example import Example, Layout
from regard.data.readers import read_aligned, read_documents, read_pairs
from regard.data.settings import LANGUAGE_TOKEN, DataSettings
from regard.data.word_links import attach_links
from regard.errors import RegardError

# Tabs are white space; other control characters are damage.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
WHITESPACE = re.compile(r"[ \t\r\n\u2028\u2029]+")
MAX_SHOWN = 500  # characters of a side in the file of rejected examples
RATIO_SMOOTHING = 10  # characters added to both sides before a ratio: "no" → "nicht" is not unusual


class RejectedExamples:
    """The file of examples that are not used, with the reason for each; counted by reason."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()
        self._file = path.open("w", encoding="utf-8", errors="replace")

    def add(self, example: Example, reason: str) -> None:
        """Write one."""
        self.counts[reason] += 1
        record = {"file": example.file, "line": example.line, "reason": reason}
        texts = {"source": example.source[:MAX_SHOWN], "target": example.target[:MAX_SHOWN]}
        self._file.write(json.dumps({**record, **texts}, ensure_ascii=False) + "\n")

    @property
    def total(self) -> int:
        """The number of rejected examples."""
        return sum(self.counts.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if not self.total:
            self.path.unlink()


def read_examples(settings: DataSettings, *, valid: bool = False) -> Iterator[Example]:
    """The examples of all files that the settings name. Raises RegardError with one sentence where a file is wrong."""
    pairs = settings.valid_pairs if valid else settings.pairs
    sources = settings.valid_source if valid else settings.source
    targets = settings.valid_target if valid else settings.target
    prefix = "valid_" if valid else ""
    if len(sources) != len(targets):
        raise RegardError(
            f"data.{prefix}source names {len(sources)} files and data.{prefix}target {len(targets)}: each needs one."
        )
    alignments = [] if valid else list(settings.alignment)
    if alignments and (len(alignments) != len(sources) or pairs):
        raise RegardError(
            "data.alignment: it goes with text files of sources and targets, one file of links for each pair of them."
        )
    layout = layout_from_settings(settings)
    for source, target in zip(sources, targets, strict=True):
        examples = read_aligned(source, target)
        yield from attach_links(examples, alignments.pop(0)) if alignments else examples
    for path in settings.valid_text if valid else settings.text:
        yield from read_documents(path)
    for path in pairs:
        if not settings.target_languages:
            yield from read_pairs(path, layout)
        for language in settings.target_languages:
            for example in read_pairs(path, replace(layout, target_language=language)):
                text = f"{LANGUAGE_TOKEN.format(language)} {example.target}" if example.target.strip() else ""
                yield replace(example, target=text)


def layout_from_settings(settings: DataSettings) -> Layout:
    """Where source and target are in a file that has both."""
    return Layout(
        settings.source_language,
        settings.target_language,
        settings.source_column,
        settings.target_column,
        settings.question_column,
    )


def valid_examples(
    examples: Iterator[Example],
    settings: DataSettings,
    rejected: RejectedExamples,
    *,
    labels: bool = False,
    file_names: bool = False,
    allow_empty_target: bool = False,
) -> Iterator[Example]:
    """The examples without a problem, their white space normalized; the others are rejected.

    labels: targets keep their case. file_names: sources are names of files and stay as they are.
    """
    for example in examples:
        source = example.source if file_names else normalize_whitespace(example.source)
        target = normalize_whitespace(example.target)
        problem = example.problem or find_problem(
            source, target, settings.max_characters, allow_empty_target=allow_empty_target
        )
        if problem:
            rejected.add(example, problem)
            continue
        if settings.lowercase:
            source, target = source if file_names else source.lower(), target if labels else target.lower()
        yield replace(example, source=source, target=target)


def normalize_whitespace(text: str) -> str:
    """Each run of spaces, tabs and line ends becomes one space; none is left at the ends."""
    return WHITESPACE.sub(" ", text).strip(" ")


def find_problem(
    source: str, target: str, max_characters: int | None = None, *, allow_empty_target: bool = False
) -> str:
    """Why a pair cannot be used, in words; empty if it can."""
    if not source.strip() or not (target.strip() or allow_empty_target):
        return "empty target" if source.strip() else "empty source"
    if max_characters and max(len(source), len(target)) > max_characters:
        return f"over {max_characters:,} characters"
    for text in (source, target):
        if not text.isprintable() and CONTROL.search(text):
            return "control characters"
        if not text.isprintable() and LONE_SURROGATE.search(text):
            return "half a character (a lone surrogate)"
    return ""
