"""What people want to do, and what suits it."""

from pathlib import Path

import pytest

from regard.data.settings import DataSettings
from regard.models.presets import PRESETS
from regard.training.settings import RunSettings, run_settings
from regard.training.tasks import TASKS, medium_in, preset_for
from tests.media import picture_bytes, recording_bytes


def test_every_task_has_presets_that_exist_and_read_what_they_should() -> None:
    for task, presets in TASKS.items():
        for medium, name in presets.items():
            settings = RunSettings.parse(PRESETS[name][1])
            assert settings.model.source.kind == medium, task
            assert settings.model.labels == (task == "classify")


def table(tmp_path: Path, name: str, rows: str) -> Path:
    path = tmp_path / name
    path.write_text(rows)
    return path


def test_files_tell_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "my photo.png").write_bytes(picture_bytes())
    (tmp_path / "a.wav").write_bytes(recording_bytes())
    cases = {
        "text": "source\ttarget\nhello\thallo\n",
        "images": "file\tcaption\nmy photo.png\tsomething\n",
        "speech": "file\ttranscript\na.wav\tone two\n",
    }
    for medium, rows in cases.items():
        path = table(tmp_path, f"{medium}.tsv", rows)
        assert medium_in(DataSettings(pairs=(path,))) == medium
    words = table(tmp_path, "words.tsv", "source\ttarget\nopen the file photo.png\töffne photo.png\n")
    assert medium_in(DataSettings(pairs=(words,))) == "text"


def test_the_preset_follows_from_task_and_files(tmp_path: Path) -> None:
    text = table(tmp_path, "t.tsv", "label\ttext\nyes\tfine\n")
    given = {"data": {"pairs": [str(text)]}}
    assert run_settings(None, {}, [], given).preset == "transformer-tiny"
    assert run_settings(None, {}, [], given, task="classify").preset == "classifier"
    assert run_settings(None, {}, [], given, task="summarise").model.copies
    assert run_settings("classifier-conv", {}, [], given, task="classify").preset == "classifier-conv"
    with pytest.raises(ValueError, match=r"caption needs pictures .*and the sources of these files are text"):
        run_settings(None, {}, [], given, task="caption")
    with pytest.raises(ValueError, match="there is no 'sing'; there are translate, classify"):
        preset_for("sing", "text")


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [
        ("t.tsv", "It rains .\tWhat does it do ?\train\n", (1, 2, 3)),
        ("n.tsv", "question\tanswer\tstory\nWhat ?\train\tIt rains .\n", ("story", "question", "answer")),
        (
            "j.jsonl",
            '{"context": "It rains.", "question": "What?", "answer": "rain"}\n',
            ("context", "question", "answer"),
        ),
    ],
)
def test_story_question_and_answer_are_found(
    tmp_path: Path, name: str, rows: str, columns: tuple[str | int, ...]
) -> None:
    path = table(tmp_path, name, rows)
    data = run_settings(None, {}, [], {"data": {"pairs": [str(path)]}}, task="answer").data
    assert (data.source_column, data.question_column, data.target_column) == columns
