"""Readers of tables: TSV, CSV and JSON lines, and which of their columns are the two sides."""

import csv
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.data.readers import Example, Layout, lines_of
from regard.tokens import SEPARATOR_SIGN

SOURCE_NAMES = (
    *("source", "src", "input"),
    *("image", "img", "picture", "audio", "recording", "wav", "file", "file_name", "filename", "path"),
    *("story", "context", "passage", "document", "article", "body", "text", "question", "sentence", "en"),
)
TARGET_NAMES = (
    *("target", "tgt", "trg", "output", "answer", "translation", "caption", "captions", "label", "class", "category"),
    *("summary", "transcript", "transcription", "sentence"),
)
CLASS_NAMES = ("label", "class", "category")
TAB = "\t"


def _separator(path: Path) -> str:
    """Between the cells of a row: in CSV a semicolon, where the first line has no comma, as spreadsheets write it."""
    if path.name.lower().removesuffix(".gz").rpartition(".")[2] != "csv":
        return TAB
    first = next(lines_of(path), ("", ""))[0]
    return ";" if ";" in first and "," not in first else ","


def columns_taken(path: Path, layout: Layout) -> str:
    """A sentence about a table that has more columns than are read, if nobody said which; else nothing."""
    suffix = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix not in ("tsv", "tab", "csv") or layout.source_column is not None or layout.target_column is not None:
        return ""
    first = next(_rows(path, _separator(path)), (1, [], ""))[1]
    if len(first) < 3:
        return ""
    header = _looks_like_a_header(first, layout)
    source, target = (
        first[at].strip() if header else f"the {('first', 'second')[at] if at < 2 else f'{at + 1}th'}"
        for at in _columns(path, first if header else None, len(first), layout)
    )
    return (
        f"{path} has {len(first)} columns, of which {source} is the source and {target} the target; name others with "
        f"--set data.source_column=NAME or a number, and data.target_column."
    )


def read_table(path: Path, layout: Layout) -> Iterator[Example]:
    """TSV and CSV. The first line is a header if columns are asked for by name, or if it names known sides."""
    separator = _separator(path)
    reader = _rows(path, separator)
    try:
        number, first, wrong = next(reader)
    except StopIteration:
        return
    wanted = (layout.source_column, layout.target_column, layout.question_column)
    header = any(isinstance(column, str) for column in wanted) or _looks_like_a_header(first, layout)
    columns = _columns(path, first if header else None, len(first), layout)
    question = _question_column(path, first if header else None, len(first), layout)
    rows = reader if header else _again((number, first, wrong), reader)
    needed = max(columns) + 1
    for number, row, wrong in rows:
        if len(row) < needed:
            if number == 1 and not header:
                raise ValueError(
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
    return f"{source} {SEPARATOR_SIGN} {question}" if question.strip() else source


def _question_column(path: Path, header: list[str] | None, width: int, layout: Layout) -> int | None:
    wanted = layout.question_column
    if wanted is None:
        return None
    names = [name.strip() for name in header or []]
    if (isinstance(wanted, int) and not 1 <= wanted <= width) or (isinstance(wanted, str) and wanted not in names):
        has = _listed(names) if names else f"{width} columns, counted from 1"
        raise ValueError(f"{path}: there is no column {wanted!r}; the first line has {has}.")
    return wanted - 1 if isinstance(wanted, int) else names.index(wanted)


def question_columns(path: Path) -> dict[str, Any]:
    """Settings that name the columns of a story, a question and an answer: by their names, or the first three."""
    if path.name.lower().removesuffix(".gz").rpartition(".")[2] in ("jsonl", "ndjson"):
        line = next(lines_of(path), ("", ""))[0]
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return {}
        first = list(record) if isinstance(record, dict) else []
    else:
        first = [name.strip() for name in next(_rows(path, _separator(path)), (1, [], ""))[1]]
    named = {name.lower(): name for name in first}
    stories = [named[name] for name in SOURCE_NAMES if name in named and name != "question"]
    if "question" in named and stories:
        answers = [named[name] for name in TARGET_NAMES if name in named]
        found: dict[str, Any] = {"source_column": stories[0], "question_column": named["question"]}
        return {**found, "target_column": answers[0]} if answers else found
    if len(first) == 3:
        return {"source_column": 1, "question_column": 2, "target_column": 3}
    return {}


def _again(
    first: tuple[int, list[str], str], rest: Iterator[tuple[int, list[str], str]]
) -> Iterator[tuple[int, list[str], str]]:
    yield first
    yield from rest


def _rows(path: Path, separator: str) -> Iterator[tuple[int, list[str], str]]:
    if separator == TAB:  # no quoting in TSV: a quotation mark is a quotation mark
        for number, (line, wrong) in enumerate(lines_of(path), 1):
            if line.strip() or wrong:
                yield number, line.split("\t"), wrong
        return
    wrongs: list[str] = []

    def lines() -> Iterator[str]:
        for line, wrong in lines_of(path):
            wrongs.append(wrong)
            yield line + "\n"

    csv.field_size_limit(1 << 24)
    reader = csv.reader(lines(), strict=True, delimiter=separator)
    while True:
        started = reader.line_num + 1
        wrongs.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            what = "a quotation mark is opened and never closed" if "end of data" in str(error) else f"{error}"
            raise ValueError(f"{path}, line {started:,}: this is not CSV: {what}.") from None
        if row:
            yield started, row, next((wrong for wrong in wrongs if wrong), "")


def _looks_like_a_header(row: list[str], layout: Layout) -> bool:
    """Whether it names two sides: by usual names, by the languages asked for, or by two languages' names."""
    names = [name.strip().lower() for name in row]
    asked = [language.lower() for language in (layout.source_language, layout.target_language) if language]
    if any(name in SOURCE_NAMES[:-1] for name in names) and any(name in TARGET_NAMES for name in names):
        return True
    return (len(asked) == 2 and set(asked) <= set(names)) or len(_language_columns(names)) >= 2


def _language_columns(names: list[str]) -> list[int]:
    """The columns that have a language's name in English, such as german."""
    return [place for place, name in enumerate(names) if name in _language_names()]


def _names_of(language: str) -> list[str]:
    """What a column of this language may be called: de, german."""
    from babel import Locale, UnknownLocaleError

    try:
        return [language.lower(), str(Locale.parse(language, sep="-").english_name).lower()]
    except (UnknownLocaleError, ValueError, TypeError):
        return [language.lower()]


@functools.cache
def _language_names() -> frozenset[str]:
    from babel import Locale

    return frozenset(name.lower() for name in Locale("en").languages.values())


def _columns(path: Path, header: list[str] | None, width: int, layout: Layout) -> tuple[int, int]:
    names = [name.strip() for name in header] if header else []
    for wanted in (layout.source_column, layout.target_column):
        if isinstance(wanted, int) and not 1 <= wanted <= max(width, 1):
            raise ValueError(f"{path}: there is no column {wanted}; it has {width}, counted from 1.")
        if isinstance(wanted, str) and wanted not in names:
            raise ValueError(f"{path}: there is no column {wanted!r}; the first line has {_listed(names)}.")
    source, target = _which(names or [""] * width, layout)
    for place, language in ((source, layout.source_language), (target, layout.target_language)):
        if header and place is None and language:
            raise ValueError(f"{path}: there is no column for {language}; the first line has {_listed(names)}.")
    if source is None and target is None and len(named := _language_columns([name.lower() for name in names])) >= 2:
        source, target = named[:2]
    # Nothing tells where a side is: it is the first column, or the first that the other side has not taken.
    source = source if source is not None else next(place for place in (0, 1) if place != target)
    return source, target if target is not None else next(place for place in (1, 0) if place != source)


def _listed(names: list[str]) -> str:
    return ", ".join(name[:40] for name in names)


def _which(names: list[str], layout: Layout) -> tuple[int | None, int | None]:
    """Which of the fields are source and target: by column, by language, by a usual name, or as the one of two left."""
    lower = [name.lower() for name in names]
    found: list[int | None] = []
    for wanted, language, usual in (
        (layout.source_column, layout.source_language, SOURCE_NAMES),
        (layout.target_column, layout.target_language, TARGET_NAMES),
    ):
        if wanted is not None:
            found.append(wanted - 1 if isinstance(wanted, int) else names.index(wanted) if wanted in names else None)
            continue
        known = (_names_of(language) if language else []) + list(usual)
        places = [lower.index(name) for name in known if name in lower]
        found.append(next((place for place in places if place not in found), None))
    source, target = found
    if len(names) == 2:  # the one that is left, unless another was asked for
        if source is None and target is not None and not layout.source_language:
            source = 1 - target
        elif target is None and source is not None and not layout.target_language:
            target = 1 - source
    return source, target


def read_json_lines(path: Path, layout: Layout) -> Iterator[Example]:
    for number, (line, wrong) in enumerate(lines_of(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # also a number of thousands of digits
            if number == 1:
                raise ValueError(
                    f"{path}, line 1: this is not JSON; a .jsonl file has one JSON object a line."
                ) from None
            yield Example(line, "", str(path), number, "not JSON")
            continue
        sides = _json_sides(path, number, record, layout)
        if sides is None:
            yield Example(line, "", str(path), number, wrong or "a side is missing")
        else:
            for target in sides[1]:
                yield Example(sides[0], target, str(path), number, wrong)


def _json_sides(path: Path, number: int, record: Any, layout: Layout) -> tuple[str, list[str]] | None:
    """The source, and its targets: a picture may have several."""
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]  # as Hugging Face's datasets write them
    if isinstance(record, list):
        record = {str(place): value for place, value in enumerate(record, 1)}
    if not isinstance(record, dict):
        return None
    names = list(record)
    source, target = _which(names, layout)
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
            raise ValueError(
                f"{path}, line 1: no field for the {side}; there are {_listed(names)}: name "
                f"one by --{'from' if side == 'source' else 'to'}, or by its column (--set data.{side}_column=NAME in "
                f"training, --{side}-column NAME in evaluation)."
            )
    if source is None or target is None or max(source, target) >= len(names):
        return None
    given, said = record[names[source]], record[names[target]]
    said = said if isinstance(said, list) else [said]
    if layout.target_column is not None or names[target].lower() in CLASS_NAMES:  # a class may be a number
        said = [str(each) if isinstance(each, int) else each for each in said]
    if not isinstance(given, str) or not said or not all(isinstance(each, str) for each in said):
        return None
    if layout.question_column is not None:
        question = record.get(str(layout.question_column))
        if not isinstance(question, str):
            return None
        given = with_question(given, question)
    return given, said
