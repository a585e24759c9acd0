"""What people want to do, and the preset that suits it and their files. Imports no PyTorch."""

from pathlib import Path
from typing import Any, Literal

from regard.data.door import examples
from regard.data.keeping import found_in
from regard.data.media import Pictures, Recordings
from regard.data.settings import DataSettings
from regard.data.tables import question_columns

Medium = Literal["text", "images", "speech"]

# For each task, the preset for each kind of source that it is possible with.
TASKS: dict[str, dict[Medium, str]] = {
    "translate": {"text": "transformer-tiny"},
    "classify": {"text": "classifier", "images": "image-classifier", "speech": "speech-classifier"},
    "caption": {"images": "show-attend-tell"},
    "speech": {"speech": "listen-attend-spell"},
    "summarise": {"text": "pointer-generator"},
    "answer": {"text": "answer"},
}
USUAL: dict[Medium, str] = {"text": "translate", "images": "caption", "speech": "speech"}
WHAT: dict[Medium, str] = {"text": "text", "images": "pictures", "speech": "recordings"}


def medium_in(settings: DataSettings) -> Medium:
    """What the sources of these files are, by the first of them."""
    for first in examples(settings):
        if first.content is not None:
            return "images"
        suffix = Path(first.source.strip()).suffix.lower()
        kinds: dict[Medium, tuple[str, ...]] = {"images": Pictures.suffixes, "speech": Recordings.suffixes}
        for kind, suffixes in kinds.items():
            if suffix in suffixes and " " not in first.source.strip():
                return kind
            try:
                if suffix in suffixes and found_in(first.source, first.file, settings.media).is_file():
                    return kind
            except (ValueError, OSError):
                continue
        break
    return "text"


def preset_for(task: str | None, medium: Medium) -> str:
    """The preset for a task with such sources. Raises ValueError if there is none."""
    if task is not None and task not in TASKS:
        raise ValueError(f"--task: there is no {task!r}; there are {', '.join(TASKS)}.")
    task = task or USUAL[medium]
    if medium not in TASKS[task]:
        needed = " or ".join(WHAT[each] for each in TASKS[task])
        hint = " (name their folder with --media, if it is not the table's)" if medium == "text" else ""
        raise ValueError(f"--task: {task} needs {needed}{hint}, and the sources of these files are {WHAT[medium]}.")
    return TASKS[task][medium]


def columns_for(task: str | None, files: tuple[Path, ...]) -> dict[str, Any]:
    """Which columns of these tables are story, question and answer, where a task has such."""
    if task != "answer" or not files:
        return {}
    return question_columns(files[0])
