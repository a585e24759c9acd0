"""Detection of the task and the modality of files. Imports no PyTorch."""

from collections import Counter
from itertools import islice
from pathlib import Path

from regard.data.column_detection import MEDIA_SHARE, MEDIA_SUFFIXES, PREVIEW_ROWS, UNSUPPORTED_MEDIA
from regard.data.example import Example
from regard.data.input_validation import read_examples
from regard.data.media.base import MEDIA_PROCESSORS
from regard.data.media_store import resolve_media_path
from regard.data.settings import DataSettings
from regard.errors import RegardError
from regard.tasks.base import Task, all_tasks


def detect_modality(settings: DataSettings) -> str:
    """The modality of the sources, by their suffixes. Raises RegardError if they cannot be read."""
    if settings.text:
        return "none"
    for modality, processor in MEDIA_PROCESSORS.items():
        if processor.recognizes(settings):
            return modality
    counts: Counter[str] = Counter()
    for example in islice(read_examples(settings), PREVIEW_ROWS):
        if example.content is not None:
            return "image"
        counts[_suffix(example, settings)] += 1
    enough = MEDIA_SHARE * counts.total()
    for modality, processor in MEDIA_PROCESSORS.items():
        if counts and sum(counts[suffix] for suffix in processor.suffixes) >= max(1, enough):
            return modality
    unsupported = [suffix for suffix in UNSUPPORTED_MEDIA if counts[suffix]]
    if unsupported and sum(counts[suffix] for suffix in MEDIA_SUFFIXES) >= enough:
        suffixes = [suffix for _, processor in MEDIA_PROCESSORS.items() for suffix in processor.suffixes]
        known = ", ".join(each.lstrip(".") for each in suffixes)
        raise RegardError(
            f"the sources are {unsupported[0]} files, which are not read; convert them to one of {known}."
        )
    return "text"


def _suffix(example: Example, settings: DataSettings) -> str:
    """The suffix of a file name; empty for a text, even for one that ends in photo.png."""
    name = example.source.strip()
    if " " in name:
        try:
            if not resolve_media_path(example.source, example.file, settings.media).is_file():
                return ""
        except (RegardError, OSError):
            return ""
    return Path(name).suffix.lower()


def detect_task(settings: DataSettings, modality: str) -> Task:
    """The task with the highest confidence. Raises RegardError if two have the same, or none is above zero."""
    ranked = sorted(((task.recognizes(settings, modality), task) for task in all_tasks()), key=lambda each: -each[0])
    (best, task), (second, other) = ranked[:2]
    if not best:
        raise RegardError("--task: these files do not show what to train for; name a task.")
    if best == second:
        raise RegardError(f"--task: these files may be for {task.name} or for {other.name}; name one.")
    return task
