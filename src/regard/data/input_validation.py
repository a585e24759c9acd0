"""The door: every example is checked, and what is wrong is set aside into a file, counted and shown."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from regard.data.formats.readers import Example, Layout, read_aligned, read_documents, read_pairs
from regard.data.settings import LANGUAGE_SIGN, DataSettings
from regard.data.word_links import linked
from regard.errors import RegardError

# Tabs are white space; other control characters are damage.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
HALF = re.compile(r"[\ud800-\udfff]")
WHITE = re.compile(r"[ \t\r\n\u2028\u2029]+")
SHOWN = 500  # characters of a side kept in the file of what was set aside
SMOOTHING = 10  # characters added to both sides before a ratio: "no" → "nicht" is not absurd


class SetAside:
    """The file of examples that were not used, with the reason for each; counted by reason."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()
        self._file = path.open("w", encoding="utf-8", errors="replace")

    def put(self, example: Example, reason: str) -> None:
        """Keep one."""
        self.counts[reason] += 1
        record = {"file": example.file, "line": example.line, "reason": reason}
        sides = {"source": example.source[:SHOWN], "target": example.target[:SHOWN]}
        self._file.write(json.dumps({**record, **sides}, ensure_ascii=False) + "\n")

    @property
    def total(self) -> int:
        """How many."""
        return sum(self.counts.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if not self.total:
            self.path.unlink()


def examples(settings: DataSettings, *, valid: bool = False) -> Iterator[Example]:
    """All that the settings name, file after file. Raises RegardError with one sentence where a file is wrong."""
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
    layout = layout_in(settings)
    for source, target in zip(sources, targets, strict=True):
        found = read_aligned(source, target)
        yield from linked(found, alignments.pop(0)) if alignments else found
    for path in settings.valid_text if valid else settings.text:
        yield from read_documents(path)
    for path in pairs:
        if not settings.target_languages:
            yield from read_pairs(path, layout)
        for language in settings.target_languages:
            for example in read_pairs(path, replace(layout, target_language=language)):
                said = f"{LANGUAGE_SIGN.format(language)} {example.target}" if example.target.strip() else ""
                yield replace(example, target=said)


def layout_in(settings: DataSettings) -> Layout:
    """Where the sides are in a file that has both."""
    sides = settings.source_language, settings.target_language, settings.source_column, settings.target_column
    return Layout(*sides, question_column=settings.question_column)


def admitted(
    found: Iterator[Example],
    settings: DataSettings,
    aside: SetAside,
    *,
    labels: bool = False,
    names: bool = False,
    unsaid: bool = False,
) -> Iterator[Example]:
    """The examples that are right, white space tidied; the others are set aside. Labels keep their case, and names of
    files every sign. unsaid: a target may be empty."""
    for example in found:
        source, target = example.source if names else tidy(example.source), tidy(example.target)
        if reason := example.wrong or flaw(source, target, settings.most_characters, unsaid=unsaid):
            aside.put(example, reason)
            continue
        if settings.lowercase:
            source, target = source if names else source.lower(), target if labels else target.lower()
        yield replace(example, source=source, target=target)


def tidy(text: str) -> str:
    """White space as models see it: runs of blanks, tabs and line ends are one blank."""
    return WHITE.sub(" ", text).strip(" ")


def flaw(source: str, target: str, most_characters: int | None = None, *, unsaid: bool = False) -> str:
    """What is wrong with a pair, in words; empty if nothing is. unsaid: a target may be empty."""
    if not source.strip() or not (target.strip() or unsaid):
        return "empty target" if source.strip() else "empty source"
    if most_characters and max(len(source), len(target)) > most_characters:
        return f"over {most_characters:,} characters"
    for text in (source, target):
        if not text.isprintable() and CONTROL.search(text):
            return "control characters"
        if not text.isprintable() and HALF.search(text):
            return "half a character (a lone surrogate)"
    return ""
