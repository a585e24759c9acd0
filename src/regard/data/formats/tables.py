"""Readers of tables: TSV, CSV and JSON lines."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from regard.data.answer_spans import which_occurrence
from regard.data.columns import CLASS_NAMES, columns_in, has_header, listed, which_fields
from regard.data.formats.delimited import LOOKED_AT, TAB, rows_of, separator_of
from regard.data.formats.readers import Example, Layout, lines_of
from regard.data.segments import BETWEEN
from regard.errors import RegardError


def read_table(path: Path, layout: Layout) -> Iterator[Example]:
    """TSV and CSV. The first line is a header if columns are asked for by name, if it names known sides, or if it is
    unlike what stands below it."""
    separator = separator_of(path)
    reader = rows_of(path, separator)
    some = [row for _, row, _ in islice(reader, LOOKED_AT)]
    reader = rows_of(path, separator)
    try:
        number, first, wrong = next(reader)
    except StopIteration:
        return
    header = has_header(some, layout)
    columns = columns_in(path, first if header else None, some, layout)
    question = _question_column(path, first if header else None, len(first), layout)
    rows = reader if header else _again((number, first, wrong), reader)
    needed = max(columns) + 1
    for number, row, wrong in rows:
        if len(row) < needed:
            if number == 1 and not header:
                raise RegardError(
                    f"{path}, line {number}: only {len(row)} column was found, and two are needed; are the sides "
                    f"separated by {'commas or semicolons' if separator != TAB else 'tabs'}?"
                )
            yield Example(separator.join(row), "", str(path), number, wrong or f"only {len(row)} column(s)")
            continue
        source = row[columns[0]]
        if question is not None:
            source = with_question(source, row[question] if question < len(row) else "")
        # A separator in a text: where the sides are, nobody knows.
        more = f"{len(row)} columns, where the first line has {len(first)}" if len(row) > len(first) else ""
        yield Example(source, row[columns[1]], str(path), number, wrong or more)


def with_question(source: str, question: str) -> str:
    """Both, with the mark between."""
    return f"{source}{BETWEEN}{question}" if question.strip() else source


def _question_column(path: Path, header: list[str] | None, width: int, layout: Layout) -> int | None:
    wanted = layout.question_column
    if wanted is None:
        return None
    names = [name.strip() for name in header or []]
    if (isinstance(wanted, int) and not 1 <= wanted <= width) or (isinstance(wanted, str) and wanted not in names):
        has = listed(names) if names else f"{width} columns, counted from 1"
        raise RegardError(f"{path}: there is no column {wanted!r}; the first line has {has}.")
    return wanted - 1 if isinstance(wanted, int) else names.index(wanted)


def _again(
    first: tuple[int, list[str], str], rest: Iterator[tuple[int, list[str], str]]
) -> Iterator[tuple[int, list[str], str]]:
    yield first
    yield from rest


def read_json_lines(path: Path, layout: Layout) -> Iterator[Example]:
    for number, (line, wrong) in enumerate(lines_of(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # also a number of thousands of digits
            if number == 1:
                raise RegardError(
                    f"{path}, line 1: this is not JSON; a .jsonl file has one JSON object a line."
                ) from None
            yield Example(line, "", str(path), number, "not JSON")
            continue
        sides = _json_sides(path, number, record, layout)
        if sides is None:
            yield Example(line, "", str(path), number, wrong or "a side is missing")
        else:
            for target, occurrence in sides[1]:
                yield Example(sides[0], target, str(path), number, wrong, occurrence=occurrence)


def _json_sides(path: Path, number: int, record: Any, layout: Layout) -> tuple[str, list[tuple[str, int]]] | None:
    """The source, and its targets, of which a picture may have several, each with which time it stands in the source,
    where that is said, as in SQuAD's answers."""
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]  # as Hugging Face's datasets write them
    if isinstance(record, list):
        record = {str(place): value for place, value in enumerate(record, 1)}
    if not isinstance(record, dict):
        return None
    names = list(record)
    source, target = which_fields(names, layout)
    asked = (layout.source_column, layout.target_column, layout.source_language, layout.target_language)
    unnamed = names == ["1", "2"]  # a list, in which languages cannot be found
    if (
        source is None
        and target is None
        and len(names) == 2
        and (unnamed or not any(each is not None for each in asked))
    ):
        source, target = 0, 1  # two fields: first and second
    for side, place in (("source", source), ("target", target)):
        if (place is None or not 0 <= place < len(names)) and number == 1:
            raise RegardError(
                f"{path}, line 1: no field for the {side}; there are {listed(names)}: name "
                f"one by --{'from' if side == 'source' else 'to'}, or by its column (--set data.{side}_column=NAME in "
                f"training, --{side}-column NAME in evaluation)."
            )
    if source is None or target is None or max(source, target) >= len(names):
        return None
    given: Any = record[names[source]]
    said: Any = record[names[target]]
    if isinstance(given, list) and isinstance(said, list) and len(given) == len(said):  # words, and their tags
        given, said = " ".join(map(str, given)), " ".join(map(str, said))
    starts: Any = None
    if isinstance(said, dict) and isinstance(said.get("text"), list):
        said, starts = said["text"] or [""], said.get("answer_start")
    said = said if isinstance(said, list) else [said]
    if layout.target_column is not None or names[target].lower() in CLASS_NAMES:  # a class may be a number
        said = [str(each) if isinstance(each, int | float) else each for each in said]
    if not isinstance(given, str) or not said or not all(isinstance(each, str) for each in said):
        return None
    which = [0] * len(said)
    if isinstance(starts, list) and len(starts) == len(said) and all(isinstance(start, int) for start in starts):
        which = [which_occurrence(given, each, start) for each, start in zip(said, starts, strict=True)]
    if layout.question_column is not None:
        question = record.get(str(layout.question_column))
        if not isinstance(question, str):
            return None
        given = with_question(given, question)
    return given, list(zip(said, which, strict=True))
