"""Which columns of a table are the two sides, and whether its first row names them.

By usual names, by languages, and by what stands below.
"""

import functools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.data.formats.delimited import looked_at, rows_of, separator_of
from regard.data.formats.readers import Layout, lines_of
from regard.data.media import Pictures, Recordings
from regard.errors import RegardError

SOURCE_NAMES = (
    *("source", "src", "input", "tokens", "words"),
    *("image", "img", "picture", "audio", "recording", "wav", "file", "file_name", "filename", "path"),
    *("image_name", "image_id", "image_file", "image_path", "img_path", "audio_path", "audio_file", "wav_file"),
    *("story", "context", "passage", "document", "article", "body", "text", "review", "question", "sentence", "en"),
)
CLASS_NAMES = ("label", "class", "category", "sentiment", "emotion", "intent", "topic", "species")
TARGET_NAMES = (
    *("target", "tgt", "trg", "output", "answer", "answers", "translation", "caption", "captions", *CLASS_NAMES),
    *("tags", "ner_tags", "pos_tags", "summary", "transcript", "transcription", "comment", "comments", "description"),
    *("sentence", "text"),
)
PAIRS = (  # of two texts that are judged together
    *(("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2"), ("text1", "text2")),
    *(("text_a", "text_b"), ("query", "passage"), ("question", "sentence")),
)
MOST = 0.9  # of them
OTHER_MEDIA = (".mp3", ".m4a", ".aac", ".wma", ".mp4", ".webm", ".tif", ".tiff", ".heic", ".avif", ".svg")
MEDIA = (*Pictures.suffixes, *Recordings.suffixes, *OTHER_MEDIA)
NAME = re.compile(r"[^\W\d][\w .-]{0,39}")
NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
REPEATED = 12  # rows below a header that show whether there are classes


def columns_taken(path: Path, layout: Layout) -> str:
    """A sentence about a table that has more columns than are read, if nobody said which; else nothing."""
    suffix = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix not in ("tsv", "tab", "csv") or layout.source_column is not None or layout.target_column is not None:
        return ""
    some = looked_at(path)
    first = some[0] if some else []
    if len(first) < 3:
        return ""
    header = has_header(some, layout)
    source, target = (
        first[at].strip() if header else f"the {('first', 'second')[at] if at < 2 else f'{at + 1}th'}"
        for at in columns_in(path, first if header else None, some, layout)
    )
    return (
        f"{path} has {len(first)} columns, of which {source} is the source and {target} the target; name others with "
        f"--set data.source_column=NAME or a number, and data.target_column."
    )


def question_columns(path: Path) -> dict[str, Any]:
    """Settings that name the columns of a story, a question and an answer: by their names, or the first three."""
    suffix = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix in ("jsonl", "ndjson"):
        first = _fields_of(path)
    elif suffix == "json":
        return {}  # SQuAD's says itself what is what
    else:
        first = [name.strip() for name in next(rows_of(path, separator_of(path)), (1, [], ""))[1]]
    named = {name.lower(): name for name in first}
    stories = [named[name] for name in SOURCE_NAMES if name in named and name != "question"]
    if "question" in named and stories:
        answers = [named[name] for name in TARGET_NAMES if name in named]
        found: dict[str, Any] = {"source_column": stories[0], "question_column": named["question"]}
        return {**found, "target_column": answers[0]} if answers else found
    if len(first) == 3:
        return {"source_column": 1, "question_column": 2, "target_column": 3}
    return {}


def asked_columns(path: Path, layout: Layout) -> Layout:
    """A layout for a table of passages and questions: as it is, if the table has its columns; else by the usual names,
    or the first two, and the answers after them."""
    suffix = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix not in ("tsv", "tab", "csv", "jsonl", "ndjson") or not path.is_file():
        return layout
    first = (
        _fields_of(path) if suffix in ("jsonl", "ndjson") else [name.strip() for name in (looked_at(path) or [[]])[0]]
    )
    known = [column for column in (layout.source_column, layout.question_column) if isinstance(column, str)]
    if layout.question_column is not None and all(column in first for column in known):
        return layout
    found = question_columns(path)
    if not found and len(first) >= 2:
        found = {"source_column": 1, "question_column": 2, "target_column": 3 if len(first) > 2 else None}
    return replace(layout, **{"target_column": layout.target_column, **found}) if found else layout


def names_questions(path: Path) -> bool:
    """Whether a table's columns are a story, a question and an answer, by their names."""
    suffix = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix not in ("tsv", "tab", "csv", "jsonl", "ndjson"):
        return False
    found = question_columns(path)
    return isinstance(found.get("question_column"), str) and "target_column" in found


def _fields_of(path: Path) -> list[str]:
    """The names in the first record of a file of JSON lines."""
    line = next(lines_of(path), ("", ""))[0]
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return list(record) if isinstance(record, dict) else []


def has_header(some: list[list[str]], layout: Layout) -> bool:
    """Whether the first of these rows names the columns: since somebody asked for one by name, by usual names, by the
    languages asked for or two languages' names, or since it is unlike the others."""
    wanted = (layout.source_column, layout.target_column, layout.question_column)
    if any(isinstance(column, str) for column in wanted):
        return True
    names = [name.strip().lower() for name in some[0]] if some else []
    asked = {language.lower() for language in (layout.source_language, layout.target_language) if language}
    sources = [place for place, name in enumerate(names) if name in SOURCE_NAMES[:-1]]
    targets = [place for place, name in enumerate(names) if name in TARGET_NAMES]
    if sources and targets and len({*sources, *targets}) > 1:
        return True
    if asked and asked <= set(names) and (len(asked) == 2 or sources):
        return True
    return len(_language_columns(names)) >= 2 or _is_unlike(some)


def _is_unlike(some: list[list[str]]) -> bool:
    """Whether the first row has names where the others have names of files, numbers, or classes that come again."""
    first, rest = some[0] if some else [], some[1:]
    if not rest or not all(NAME.fullmatch(cell.strip()) for cell in first) or len(set(first)) < len(first):
        return False
    for place, name in enumerate(first):
        below = [row[place].strip() for row in rest if place < len(row) and row[place].strip()]
        if not below or name.strip() in below:
            continue
        if _share(below, lambda cell: cell.lower().endswith(MEDIA)) >= MOST:
            return not name.strip().lower().endswith(MEDIA)
        if len(below) > 2 and _share(below, lambda cell: bool(NUMBER.fullmatch(cell))) == 1:
            return not NUMBER.fullmatch(name.strip())
        if len(below) >= REPEATED and len(set(below)) <= len(below) / 3:
            return True
    return False


def _share(cells: list[str], is_so: Callable[[str], bool]) -> float:
    return sum(map(is_so, cells)) / max(1, len(cells))


def media_column(some: list[list[str]]) -> int | None:
    """The first column of these rows that has names of pictures or recordings."""
    for place in range(max(map(len, some), default=0)):
        cells = [row[place].strip() for row in some if place < len(row) and row[place].strip()]
        if cells and _share(cells, lambda cell: cell.lower().endswith(MEDIA)) >= MOST:
            return place
    return None


def _pair_columns(path: Path) -> dict[str, Any]:
    """Settings that name the columns of two texts that have one class, by usual names."""
    if path.is_dir():
        return {}
    suffix = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix in ("jsonl", "ndjson"):
        names = _fields_of(path)
    elif suffix in ("tsv", "tab", "csv"):
        names = [name.strip() for name in next(rows_of(path, separator_of(path)), (1, [], ""))[1]]
    else:
        return {}
    named = {name.lower(): name for name in names}
    targets = [named[name] for name in CLASS_NAMES if name in named]
    for first, second in PAIRS:
        if first in named and second in named and targets:
            return {"source_column": named[first], "question_column": named[second], "target_column": targets[0]}
    return {}


def class_columns(path: Path) -> dict[str, Any]:
    """Settings that name the columns of a table of classes, where its header does not: the class is what comes again,
    and what is classified the longest of the others, or the name of a file."""
    if pair := _pair_columns(path):
        return pair
    if path.is_dir() or path.name.lower().removesuffix(".gz").rpartition(".")[2] not in ("tsv", "tab", "csv"):
        return {}
    some = looked_at(path)
    header = has_header(some, Layout())
    rows = some[1:] if header else some
    names = [name.strip().lower() for name in some[0]] if header else []
    width = len(some[0]) if some else 0
    if width < 2 or len(rows) < REPEATED or which_fields(names, Layout())[1] is not None:
        return {}
    columns = [[row[place].strip() for row in rows if place < len(row)] for place in range(width)]
    kinds = [len(set(column)) for column in columns]
    target = kinds.index(min(kinds))
    if kinds[target] > len(rows) / 2:
        return {}
    media = media_column(rows)
    lengths = [sum(map(len, column)) if place != target else -1 for place, column in enumerate(columns)]
    source = media if media is not None and media != target else lengths.index(max(lengths))
    if header:
        return {"source_column": some[0][source].strip(), "target_column": some[0][target].strip()}
    return {"source_column": source + 1, "target_column": target + 1}


def names_classes(path: Path) -> bool:
    """Whether the targets of a table are classes, by the name of their column."""
    if path.is_dir():
        return True
    suffix = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix in ("jsonl", "ndjson"):
        names = _fields_of(path)
    elif suffix in ("tsv", "tab", "csv"):
        some = looked_at(path)
        names = some[0] if some and has_header(some, Layout()) else []
    else:
        return False
    lower = [name.strip().lower() for name in names]
    target = which_fields(lower, Layout())[1]
    return target is not None and lower[target] in CLASS_NAMES


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


def columns_in(path: Path, header: list[str] | None, some: list[list[str]], layout: Layout) -> tuple[int, int]:
    names = [name.strip() for name in header] if header else []
    width = len(some[0])
    for wanted in (layout.source_column, layout.target_column):
        if isinstance(wanted, int) and not 1 <= wanted <= max(width, 1):
            raise RegardError(f"{path}: there is no column {wanted}; it has {width}, counted from 1.")
        if isinstance(wanted, str) and wanted not in names:
            raise RegardError(f"{path}: there is no column {wanted!r}; the first line has {listed(names)}.")
    source, target = which_fields(names or [""] * width, layout)
    for place, language in ((source, layout.source_language), (target, layout.target_language)):
        if header and place is None and language:
            raise RegardError(f"{path}: there is no column for {language}; the first line has {listed(names)}.")
    if layout.source_column is None and layout.source_language is None:
        files = media_column(some[1:] if header and len(some) > 1 else some)
        source = files if files is not None and files != target else source
    if source is None and target is None and len(named := _language_columns([name.lower() for name in names])) >= 2:
        source, target = named[:2]
    # Nothing tells where a side is: it is the first column, or the first that the other side has not taken.
    source = source if source is not None else next(place for place in (0, 1) if place != target)
    if target is not None and target != source:
        return source, target
    return source, source + 1 if source + 1 < max(2, width) else source - 1


def listed(names: list[str]) -> str:
    return ", ".join(name[:40] for name in names)


def which_fields(names: list[str], layout: Layout) -> tuple[int | None, int | None]:
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
        if source is None and target is not None and not layout.source_language and layout.source_column is None:
            source = 1 - target
        elif target is None and source is not None and not layout.target_language and layout.target_column is None:
            target = 1 - source
    return source, target
