"""Shared by formats of tables: usual names of the source column, splitting lines and line ends, questions."""

import io

from regard.data.column_detection import SOURCE_NAMES

COLUMN_NAMES = (*SOURCE_NAMES[:-1], "text", "sentence")  # of a source; a first row with one of them is a header


def split_lines(text: str) -> list[str]:
    """Lines with their ends, which are kept as they are."""
    return io.StringIO(text, newline="").readlines()


def split_line_end(line: str) -> tuple[str, str]:
    """A line without its end, and its end."""
    body = line.rstrip("\r\n")
    return body, line[len(body) :]


def append_questions(texts: dict[int, str], questions: dict[int, object]) -> list[str]:
    """The text of each row, with its question after a tab, if it has one."""
    return [
        f"{text}\t{question}" if isinstance(question := questions.get(row), str) and question.strip() else text
        for row, text in texts.items()
    ]
