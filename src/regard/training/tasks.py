"""What people want to do, and the preset that suits it and their files. Imports no PyTorch."""

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from regard.data.column_detection import (
    detect_class_columns,
    detect_question_columns,
    has_class_column,
    has_question_columns,
)
from regard.data.columns import MEDIA_SHARE, MEDIA_SUFFIXES, PREVIEW_ROWS, UNSUPPORTED_MEDIA
from regard.data.example import Example
from regard.data.input_validation import read_examples
from regard.data.media import Pictures, Recordings
from regard.data.media_store import found_in
from regard.data.settings import DataSettings
from regard.errors import RegardError

Medium = Literal["text", "images", "speech", "nothing"]

# For each task, the preset for each kind of source that it is possible with.
TASKS: dict[str, dict[Medium, str]] = {
    "translate": {"text": "transformer-tiny"},
    "classify": {"text": "classifier", "images": "image-classifier", "speech": "speech-classifier"},
    "caption": {"images": "show-attend-tell"},
    "speech": {"speech": "listen-attend-spell"},
    "summarise": {"text": "pointer-generator"},
    "answer": {"text": "answer"},
    "span": {"text": "span"},
    "tag": {"text": "tagger"},
    "language": {"nothing": "gpt-tiny"},
    "mask": {"nothing": "bert-tiny"},
}
ANSWERS, LEAST, FEW = 5000, 200, 0.1  # answers that are looked at; at least; the share of them that may differ
PLAIN = ("language", "mask")  # tasks that are learnt from plain text
USUAL: dict[Medium, str] = {"text": "translate", "images": "caption", "speech": "speech", "nothing": "language"}
WHAT: dict[Medium, str] = {
    "text": "text",
    "images": "pictures",
    "speech": "recordings",
    "nothing": "plain text, without pairs",
}


def medium_in(settings: DataSettings) -> Medium:
    """What the sources of these files are, by how the first of them end. Raises RegardError for what is not read."""
    if settings.text:
        return "nothing"
    counts: Counter[str] = Counter()
    for example in islice(read_examples(settings), PREVIEW_ROWS):
        if example.content is not None:
            return "images"
        counts[_suffix(example, settings)] += 1
    enough = MEDIA_SHARE * counts.total()
    kinds: dict[Medium, tuple[str, ...]] = {"images": Pictures.suffixes, "speech": Recordings.suffixes}
    for kind, suffixes in kinds.items():
        if counts and sum(counts[suffix] for suffix in suffixes) >= enough:
            return kind
    unread = [suffix for suffix in UNSUPPORTED_MEDIA if counts[suffix]]
    if unread and sum(counts[suffix] for suffix in MEDIA_SUFFIXES) >= enough:
        known = ", ".join(each.lstrip(".") for each in (*Pictures.suffixes, *Recordings.suffixes))
        raise RegardError(f"the sources are {unread[0]} files, which are not read; convert them to one of {known}.")
    return "text"


def _suffix(example: Example, settings: DataSettings) -> str:
    """How the name of a file ends; nothing for a text, even for one that ends in photo.png."""
    name = example.source.strip()
    if " " in name:
        try:
            if not found_in(example.source, example.file, settings.media).is_file():
                return ""
        except (ValueError, OSError):
            return ""
    return Path(name).suffix.lower()


def task_in(settings: DataSettings, medium: Medium) -> str:
    """What people with such files want to do, if they do not say."""
    arrays = any("idx3-ubyte" in path.name for path in settings.source)
    if arrays or (settings.pairs and settings.target_column is None and all(map(has_class_column, settings.pairs))):
        return "classify"
    if medium == "text" and settings.pairs and settings.source_column is None and settings.target_column is None:
        if all(map(is_squad, settings.pairs)):
            return "span"
        if all(map(has_question_columns, settings.pairs)):
            return "answer"
    return USUAL[medium]


def is_squad(path: Path) -> bool:
    """Whether a file has passages and questions in the form of SQuAD."""
    return path.name.lower().removesuffix(".gz").endswith(".json")


def preset_for(task: str, medium: Medium) -> str:
    """The preset for a task with such sources. Raises RegardError if there is none."""
    if task not in TASKS:
        raise RegardError(f"--task: there is no {task!r}; there are {', '.join(TASKS)}.")
    if medium not in TASKS[task]:
        needed = " or ".join(WHAT[each] for each in TASKS[task])
        hint = " (name their folder with --media, if it is not the table's)" if medium == "text" else ""
        raise RegardError(f"--task: {task} needs {needed}{hint}, and the sources of these files are {WHAT[medium]}.")
    return TASKS[task][medium]


def task_of(name: str) -> str:
    """The task that a preset was chosen for."""
    return next((task for task, presets in TASKS.items() if name in presets.values()), "answer")


def answered_by(settings: DataSettings) -> str:
    """The preset for stories and questions: where few answers come again and again, as in made-up stories, nothing need
    be copied, and sentences are better places than words; else answers are copied from what is read."""
    answers = Counter(example.target.strip().lower() for example in islice(read_examples(settings), ANSWERS))
    few = answers.total() >= LEAST and len(answers) <= FEW * answers.total()
    return "memory" if few else TASKS["answer"]["text"]


def columns_for(task: str | None, files: tuple[Path, ...]) -> dict[str, Any]:
    """Which columns of these tables are story, question and answer, or text and class, where a task has such."""
    if not files:
        return {}
    if task == "classify":
        return detect_class_columns(files[0])
    return detect_question_columns(files[0]) if task in ("answer", "span") else {}
