"""Which columns of a table are source and target, and whether its first row is a header.

Detected by usual column names, by languages, and by the cells below. Works on rows; `task_columns` works on files.
"""

import functools
import re
from collections.abc import Callable
from pathlib import Path

from regard.data.example import Layout
from regard.data.media.audio import AudioProcessor
from regard.data.media.image import ImageProcessor
from regard.data.settings import Column
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
UNSUPPORTED_MEDIA = (".mp3", ".m4a", ".aac", ".wma", ".mp4", ".webm", ".tif", ".tiff", ".heic", ".avif", ".svg")
MEDIA_SUFFIXES = (*ImageProcessor.suffixes, *AudioProcessor.suffixes, *UNSUPPORTED_MEDIA)
MEDIA_SHARE = 0.9  # of the cells of a column of file names
COLUMN_NAME = re.compile(r"[^\W\d][\w .-]{0,39}")
NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
PREVIEW_ROWS = 100  # that detection reads
MIN_CLASS_ROWS = 12  # below a header, to see whether a column has classes


def detect_header(rows: list[list[str]], layout: Layout) -> bool:
    """Whether the first of these rows names the columns.

    It does if the layout names a column, if it has usual names or the names of languages, or if it is unlike the rows
    below.
    """
    selected = (layout.source_column, layout.target_column, layout.question_column)
    if any(isinstance(column, str) for column in selected):
        return True
    names = [name.strip().lower() for name in rows[0]] if rows else []
    languages = {language.lower() for language in (layout.source_language, layout.target_language) if language}
    sources = [column for column, name in enumerate(names) if name in SOURCE_NAMES[:-1]]
    targets = [column for column, name in enumerate(names) if name in TARGET_NAMES]
    if sources and targets and len({*sources, *targets}) > 1:
        return True
    if languages and languages <= set(names) and (len(languages) == 2 or sources):
        return True
    return len(_language_columns(names)) >= 2 or _first_row_differs(rows)


def _first_row_differs(rows: list[list[str]]) -> bool:
    """Whether the first row has names where the others have file names, numbers, or classes that repeat."""
    first, rest = rows[0] if rows else [], rows[1:]
    if not rest or not all(COLUMN_NAME.fullmatch(cell.strip()) for cell in first) or len(set(first)) < len(first):
        return False
    for column, name in enumerate(first):
        below = [row[column].strip() for row in rest if column < len(row) and row[column].strip()]
        if not below or name.strip() in below:
            continue
        if _share(below, _is_media) >= MEDIA_SHARE:
            return not _is_media(name.strip())
        if len(below) > 2 and _share(below, lambda cell: bool(NUMBER.fullmatch(cell))) == 1:
            return not NUMBER.fullmatch(name.strip())
        if len(below) >= MIN_CLASS_ROWS and len(set(below)) <= len(below) / 3:
            return True
    return False


def _is_media(cell: str) -> bool:
    return cell.lower().endswith(MEDIA_SUFFIXES)


def _share(cells: list[str], condition: Callable[[str], bool]) -> float:
    return sum(map(condition, cells)) / max(1, len(cells))


def media_column(rows: list[list[str]]) -> int | None:
    """The first column of these rows that has names of images or recordings."""
    for column in range(max(map(len, rows), default=0)):
        cells = [row[column].strip() for row in rows if column < len(row) and row[column].strip()]
        if cells and _share(cells, _is_media) >= MEDIA_SHARE:
            return column
    return None


def detect_columns(path: Path, header: list[str] | None, rows: list[list[str]], layout: Layout) -> tuple[int, int]:
    """The columns of source and target, counted from 0. Raises RegardError if the layout names one that is missing."""
    names = [name.strip() for name in header] if header else []
    width = len(rows[0])
    for requested in (layout.source_column, layout.target_column):
        if isinstance(requested, int) and not 1 <= requested <= max(width, 1):
            raise RegardError(f"{path}: there is no column {requested}; it has {width}, counted from 1.")
        if isinstance(requested, str) and requested not in names:
            raise RegardError(f"{path}: there is no column {requested!r}; the first line has {join_names(names)}.")
    source, target = match_fields(names or [""] * width, layout)
    for column, language in ((source, layout.source_language), (target, layout.target_language)):
        if header and column is None and language:
            raise RegardError(f"{path}: there is no column for {language}; the first line has {join_names(names)}.")
    if layout.source_column is None and layout.source_language is None:
        media = media_column(rows[1:] if header and len(rows) > 1 else rows)
        source = media if media is not None and media != target else source
    by_language = _language_columns([name.lower() for name in names])
    if source is None and target is None and len(by_language) >= 2:
        source, target = by_language[:2]
    # Otherwise a side is the first column that the other side does not have.
    source = source if source is not None else next(column for column in (0, 1) if column != target)
    if target is not None and target != source:
        return source, target
    return source, source + 1 if source + 1 < max(2, width) else source - 1


def check_column(path: Path, header: list[str] | None, width: int, column: Column | None) -> int | None:
    """The index of a requested column. Raises RegardError if it is missing."""
    if column is None:
        return None
    names = [name.strip() for name in header or []]
    if (isinstance(column, int) and not 1 <= column <= width) or (isinstance(column, str) and column not in names):
        has = join_names(names) if names else f"{width} columns, counted from 1"
        raise RegardError(f"{path}: there is no column {column!r}; the first line has {has}.")
    return column - 1 if isinstance(column, int) else names.index(column)


def match_fields(names: list[str], layout: Layout) -> tuple[int | None, int | None]:
    """Which of the names are source and target: by column, by language, by a usual name, or as the other one of two."""
    lower = [name.lower() for name in names]
    matches: list[int | None] = []
    for requested, language, usual in (
        (layout.source_column, layout.source_language, SOURCE_NAMES),
        (layout.target_column, layout.target_language, TARGET_NAMES),
    ):
        if requested is not None:
            matches.append(
                requested - 1 if isinstance(requested, int) else names.index(requested) if requested in names else None
            )
            continue
        known = (_column_names_of(language) if language else []) + list(usual)
        columns = [lower.index(name) for name in known if name in lower]
        matches.append(next((column for column in columns if column not in matches), None))
    source, target = matches
    if len(names) == 2:  # the other of the two, unless another one was requested
        if source is None and target is not None and not layout.source_language and layout.source_column is None:
            source = 1 - target
        elif target is None and source is not None and not layout.target_language and layout.target_column is None:
            target = 1 - source
    return source, target


def join_names(names: list[str]) -> str:
    """Column names for an error, each shortened."""
    return ", ".join(name[:40] for name in names)


def _language_columns(names: list[str]) -> list[int]:
    """The columns that are named after a language in English, such as german."""
    return [column for column, name in enumerate(names) if name in _language_names()]


def _column_names_of(language: str) -> list[str]:
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
