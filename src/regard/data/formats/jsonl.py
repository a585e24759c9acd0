"""JSON lines: one object or list a line."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.data.answer_spans import occurrence_index
from regard.data.column_detection import CLASS_NAMES, join_names, match_fields
from regard.data.example import Example, Layout, append_question
from regard.data.formats.text import split_document
from regard.data.input_files import read_lines
from regard.data.readers import READERS, Reader, TablePreview
from regard.errors import RegardError


@dataclass(frozen=True)
class _Record:
    """A source and its targets, such as several captions of one image."""

    source: str
    targets: list[tuple[str, int]]  # each with its occurrence in the source, for answers that are spans of it


@READERS.register("jsonl")
class JsonLinesReader(Reader):
    """Records with a field for the source and one for the target."""

    suffixes = (".jsonl", ".ndjson")

    def read(self, path: Path, layout: Layout) -> Iterator[Example]:
        for number, (line, problem) in enumerate(read_lines(path), 1):
            if not line.strip():
                continue
            try:
                content = json.loads(line)
            except (ValueError, RecursionError):  # also a number of thousands of digits
                if number == 1:
                    raise RegardError(
                        f"{path}, line 1: this is not JSON; a .jsonl file has one JSON object a line."
                    ) from None
                yield Example(line, "", str(path), number, "not JSON")
                continue
            record = _parse_record(path, number, content, layout)
            if record is None:
                yield Example(line, "", str(path), number, problem or "a side is missing")
                continue
            for target, occurrence in record.targets:
                yield Example(record.source, target, str(path), number, problem, occurrence=occurrence)

    def read_documents(self, path: Path) -> Iterator[Example]:
        """Each record's document is its field `text`."""
        for example in self.read(path, Layout(source_column="text", target_column="text")):
            for chunk in split_document(example.source):
                yield replace(example, source=chunk, target=chunk)

    def preview(self, path: Path) -> TablePreview:
        line = next(read_lines(path), ("", ""))[0]
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        return TablePreview(fields=list(record) if isinstance(record, dict) else [])


def _parse_record(path: Path, number: int, content: Any, layout: Layout) -> _Record | None:
    """None if a side is missing. Raises RegardError if it is missing in the first line."""
    if isinstance(content, dict) and isinstance(content.get("translation"), dict):
        content = content["translation"]  # as Hugging Face's datasets write them
    if isinstance(content, list):
        content = {str(position): value for position, value in enumerate(content, 1)}
    if not isinstance(content, dict):
        return None
    fields = _side_fields(path, number, list(content), layout)
    if fields is None:
        return None
    source, targets, starts = _source_and_targets(content[fields[0]], content[fields[1]])
    if layout.target_column is not None or fields[1].lower() in CLASS_NAMES:  # a class may be a number
        targets = [str(each) if isinstance(each, int | float) else each for each in targets]
    if not isinstance(source, str) or not targets or not all(isinstance(each, str) for each in targets):
        return None
    occurrences = [0] * len(targets)
    if isinstance(starts, list) and len(starts) == len(targets) and all(isinstance(start, int) for start in starts):
        occurrences = [occurrence_index(source, each, start) for each, start in zip(targets, starts, strict=True)]
    if layout.question_column is not None:
        question = content.get(str(layout.question_column))
        if not isinstance(question, str):
            return None
        source = append_question(source, question)
    return _Record(source, list(zip(targets, occurrences, strict=True)))


def _side_fields(path: Path, number: int, names: list[str], layout: Layout) -> tuple[str, str] | None:
    """The names of the fields of source and target."""
    source, target = match_fields(names, layout)
    selected = (layout.source_column, layout.target_column, layout.source_language, layout.target_language)
    is_list = names == ["1", "2"]  # in which languages cannot be found
    if source is None and target is None and len(names) == 2 and (is_list or all(each is None for each in selected)):
        source, target = 0, 1
    for side, position in (("source", source), ("target", target)):
        if (position is None or not 0 <= position < len(names)) and number == 1:
            raise RegardError(
                f"{path}, line 1: no field for the {side}; there are {join_names(names)}: name "
                f"one by --{'from' if side == 'source' else 'to'}, or by its column (--set data.{side}_column=NAME in "
                f"training, --{side}-column NAME in evaluation)."
            )
    if source is None or target is None or max(source, target) >= len(names):
        return None
    return names[source], names[target]


def _source_and_targets(source: Any, target: Any) -> tuple[Any, list[Any], Any]:
    """The source, its targets, and the characters at which they start, of answers as SQuAD has them."""
    if isinstance(source, list) and isinstance(target, list) and len(source) == len(target):  # words and their tags
        source, target = " ".join(map(str, source)), " ".join(map(str, target))
    if isinstance(target, dict) and isinstance(target.get("text"), list):
        return source, target["text"] or [""], target.get("answer_start")
    return source, target if isinstance(target, list) else [target], None
