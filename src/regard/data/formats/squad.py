"""SQuAD: questions about passages (Rajpurkar et al. 2016, arXiv:1606.05250; without an answer: 2018)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.data.answer_spans import occurrence_index
from regard.data.example import Example, Layout
from regard.data.input_files import open_file
from regard.data.readers import READERS, Reader
from regard.data.segments import SEGMENT_SEPARATOR
from regard.errors import RegardError


@READERS.register("squad")
class SquadReader(Reader):
    """Passages, their questions and their answers; each question counts as one line, even if it has several answers."""

    suffixes = (".json",)

    def read(self, path: Path, layout: Layout) -> Iterator[Example]:
        with open_file(path) as file:
            raw = file.read()
        try:
            content = json.loads(raw.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            raise RegardError(f"{path}: this is not JSON; one JSON object a line is a .jsonl file.") from None
        articles = content.get("data") if isinstance(content, dict) else None
        if not isinstance(articles, list):
            raise RegardError(
                f"{path}: a .json file is read in the form of SQuAD only, an object with data; write other records one "
                f"a line, as a .jsonl file."
            )
        number = 0
        for article in articles:
            for paragraph in _list(article, "paragraphs"):
                for entry in _list(paragraph, "qas"):
                    number += 1
                    yield from _examples(paragraph.get("context"), entry, str(path), number)


def _list(record: Any, name: str) -> list[Any]:
    values = record.get(name) if isinstance(record, dict) else None
    return values if isinstance(values, list) else []


def _examples(passage: Any, entry: Any, file: str, number: int) -> Iterator[Example]:
    question = entry.get("question") if isinstance(entry, dict) else None
    if not isinstance(passage, str) or not isinstance(question, str):
        yield Example("", "", file, number, "no passage, or no question")
        return
    source = f"{passage}{SEGMENT_SEPARATOR}{question}"
    if "answers" not in entry and entry.get("is_impossible") is not True:
        yield Example(source, "", file, number, "no answers are given")
        return
    if entry.get("is_impossible") is True or not (answers := _list(entry, "answers")):
        yield Example(source, "", file, number)
        return
    for answer in answers:
        text, start = (answer.get("text"), answer.get("answer_start")) if isinstance(answer, dict) else (None, None)
        if not isinstance(text, str):
            yield Example(source, "", file, number, "an answer without a text")
            continue
        occurrence = occurrence_index(passage, text, start) if isinstance(start, int) else 0
        yield Example(source, text, file, number, occurrence=occurrence)
