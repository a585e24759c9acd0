"""Which columns of a file a task reads: story, question and answer, or text and class."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.data.column_detection import (
    CLASS_NAMES,
    MIN_CLASS_ROWS,
    SOURCE_NAMES,
    TARGET_NAMES,
    detect_columns,
    detect_header,
    match_fields,
    media_column,
)
from regard.data.example import Layout
from regard.data.readers import preview_table

SENTENCE_PAIR_NAMES = (  # of two texts that are classified together
    *(("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"), ("text1", "text2")),
    *(("text_a", "text_b"), ("query", "passage"), ("question", "sentence")),
)


def describe_columns(path: Path, layout: Layout) -> str:
    """A sentence on which columns of a table with more than two are read if none are named; else empty."""
    table = preview_table(path)
    if table is None or not table.rows or layout.source_column is not None or layout.target_column is not None:
        return ""
    first = table.rows[0]
    if len(first) < 3:
        return ""
    header = detect_header(table.rows, layout)
    source, target = (
        first[column].strip() if header else f"the {('first', 'second')[column] if column < 2 else f'{column + 1}th'}"
        for column in detect_columns(path, first if header else None, table.rows, layout)
    )
    return (
        f"{path} has {len(first)} columns, of which {source} is the source and {target} the target; name others with "
        f"--set data.source_column=NAME or a number, and data.target_column."
    )


def detect_question_columns(path: Path) -> dict[str, Any]:
    """Settings that name the columns of a passage, a question and an answer: by their names, or the first three."""
    table = preview_table(path)
    if table is None:
        return {}
    first = table.first_row
    named = {name.lower(): name for name in first}
    passages = [named[name] for name in SOURCE_NAMES if name in named and name != "question"]
    if "question" in named and passages:
        answers = [named[name] for name in TARGET_NAMES if name in named]
        settings: dict[str, Any] = {"source_column": passages[0], "question_column": named["question"]}
        return {**settings, "target_column": answers[0]} if answers else settings
    if len(first) == 3:
        return {"source_column": 1, "question_column": 2, "target_column": 3}
    return {}


def has_question_columns(path: Path) -> bool:
    """Whether a table's columns are a passage, a question and an answer, by their names."""
    columns = detect_question_columns(path)
    return isinstance(columns.get("question_column"), str) and "target_column" in columns


def layout_with_question(path: Path, layout: Layout) -> Layout:
    """A layout for a table of passages and questions.

    The given one if the table has its columns; else the usual names, or the first two columns, and answers after them.
    """
    table = preview_table(path) if path.is_file() else None
    if table is None:
        return layout
    first = table.first_row
    named = [column for column in (layout.source_column, layout.question_column) if isinstance(column, str)]
    if layout.question_column is not None and all(column in first for column in named):
        return layout
    columns = detect_question_columns(path)
    if not columns and len(first) >= 2:
        columns = {"source_column": 1, "question_column": 2, "target_column": 3 if len(first) > 2 else None}
    return replace(layout, **{"target_column": layout.target_column, **columns}) if columns else layout


def detect_class_columns(path: Path) -> dict[str, Any]:
    """Settings that name the columns of a text and its class, where the header does not.

    The class is the column with the fewest different cells; the text is the longest of the others, or a file's name.
    """
    if pair := _sentence_pair_columns(path):
        return pair
    table = preview_table(path)
    if table is None or not table.rows:
        return {}
    header = detect_header(table.rows, Layout())
    first = [name.strip() for name in table.rows[0]]
    rows = table.rows[1:] if header else table.rows
    names = [name.lower() for name in first] if header else []
    if len(first) < 2 or len(rows) < MIN_CLASS_ROWS or match_fields(names, Layout())[1] is not None:
        return {}
    columns = [[row[column].strip() for row in rows if column < len(row)] for column in range(len(first))]
    distinct = [len(set(cells)) for cells in columns]
    target = distinct.index(min(distinct))
    if distinct[target] > len(rows) / 2:
        return {}
    media = media_column(rows)
    lengths = [sum(map(len, cells)) if column != target else -1 for column, cells in enumerate(columns)]
    source = media if media is not None and media != target else lengths.index(max(lengths))
    if header:
        return {"source_column": first[source], "target_column": first[target]}
    return {"source_column": source + 1, "target_column": target + 1}


def _sentence_pair_columns(path: Path) -> dict[str, Any]:
    """Settings that name the columns of two texts and their class, by usual names."""
    table = preview_table(path)
    named = {name.lower(): name for name in table.first_row} if table is not None else {}
    targets = [named[name] for name in CLASS_NAMES if name in named]
    for first, second in SENTENCE_PAIR_NAMES:
        if first in named and second in named and targets:
            return {"source_column": named[first], "question_column": named[second], "target_column": targets[0]}
    return {}


def has_class_column(path: Path) -> bool:
    """Whether the targets of a table are classes, by the name of their column; those of a folder always are."""
    if path.is_dir():
        return True
    table = preview_table(path)
    if table is None:
        return False
    is_named = table.fields is not None or detect_header(table.rows or [], Layout())
    names = [name.strip().lower() for name in table.first_row] if is_named else []
    target = match_fields(names, Layout())[1]
    return target is not None and names[target] in CLASS_NAMES
