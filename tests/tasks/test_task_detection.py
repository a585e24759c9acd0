"""Detection of task, modality and columns from files, and the selected presets."""

from pathlib import Path

import pytest

from regard.data.input_validation import read_examples
from regard.data.readers import read_documents
from regard.data.settings import DataSettings
from regard.tasks.base import all_tasks, get_task
from regard.tasks.presets import preset_settings
from regard.tasks.task_detection import detect_modality, detect_task
from regard.training.settings import RunSettings, run_settings
from tests.media import audio_bytes, image_bytes


def test_default_presets_exist_and_read_their_modality() -> None:
    for task in all_tasks():
        for modality, name in task.default_presets.items():
            settings = RunSettings.parse(preset_settings(name))
            assert settings.model.source.kind == ("text" if task.name == "masked_lm" else modality), task
            assert settings.task == task.name


def table(tmp_path: Path, name: str, rows: str) -> Path:
    path = tmp_path / name
    path.write_text(rows)
    return path


def test_the_modality_is_detected(tmp_path: Path) -> None:
    (tmp_path / "my photo.png").write_bytes(image_bytes())
    (tmp_path / "a.wav").write_bytes(audio_bytes())
    cases = {
        "text": "source\ttarget\nhello\thallo\n",
        "image": "file\tcaption\nmy photo.png\tsomething\n",
        "audio": "file\ttranscript\na.wav\tone two\n",
    }
    for modality, rows in cases.items():
        path = table(tmp_path, f"{modality}.tsv", rows)
        assert detect_modality(DataSettings(pairs=(path,))) == modality
    text_table = table(tmp_path, "words.tsv", "source\ttarget\nopen the file photo.png\töffne photo.png\n")
    assert detect_modality(DataSettings(pairs=(text_table,))) == "text"


def test_the_preset_is_selected_by_task_and_files(tmp_path: Path) -> None:
    text = table(tmp_path, "t.tsv", "label\ttext\nyes\tfine\n")
    settings_values = {"data": {"pairs": [str(text)]}}
    assert run_settings(None, {}, [], settings_values).preset == "classifier", "the column is named label"
    pairs = table(tmp_path, "p.tsv", "source\ttarget\nyes\tja\n")
    assert run_settings(None, {}, [], {"data": {"pairs": [str(pairs)]}}).preset == "transformer-tiny"
    assert run_settings(None, {}, [], settings_values, task="classification").preset == "classifier"
    assert run_settings(None, {}, [], settings_values, task="summarization").model.decoder.copies
    assert run_settings("classifier-conv", {}, [], settings_values, task="classification").preset == "classifier-conv"
    with pytest.raises(ValueError, match=r"captioning needs images .*and the sources of these files are text"):
        run_settings(None, {}, [], settings_values, task="captioning")
    with pytest.raises(ValueError, match="there is no task 'sing'"):
        get_task("sing")
    with pytest.raises(ValueError, match="summarise is now called summarization"):
        get_task("summarise")


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
def test_columns_of_story_question_and_answer_are_detected(
    tmp_path: Path, name: str, rows: str, columns: tuple[str | int, ...]
) -> None:
    path = table(tmp_path, name, rows)
    data = run_settings(None, {}, [], {"data": {"pairs": [str(path)]}}, task="story_qa").data
    assert (data.source_column, data.question_column, data.target_column) == columns


ROWS = [f"p{number}.png" for number in range(30)]


@pytest.mark.parametrize(
    ("header", "row", "source_and_target"),
    [
        ("image\ttext", "{name}\ta dog", ("p0.png", "a dog")),
        ("id\timage\ttext", "7\t{name}\ta dog", ("p0.png", "a dog")),
        ("image_name\tcomment_number\tcomment", "{name}\t0\ta dog", ("p0.png", "a dog")),
        ("photo\twhat it shows", "{name}\ta dog", ("p0.png", "a dog")),
        ("", "{name}\ta dog", ("p0.png", "a dog")),
    ],
)
def test_image_columns_are_detected_with_any_header(
    tmp_path: Path, header: str, row: str, source_and_target: tuple[str, str]
) -> None:
    lines = [header] * bool(header) + [row.format(name=name) for name in ROWS]
    path = table(tmp_path, "t.tsv", "".join(f"{line}\n" for line in lines))
    data = DataSettings(pairs=(path,))
    assert detect_modality(data) == "image"
    found = list(read_examples(data))
    assert (found[0].source, found[0].target) == source_and_target
    assert len(found) == len(ROWS)


def test_languages_of_a_table_have_their_own_columns(tmp_path: Path) -> None:
    path = table(tmp_path, "t.tsv", "image\ten\tde\n" + "".join(f"{name}\ta dog\tein Hund\n" for name in ROWS))
    found = list(read_examples(DataSettings(pairs=(path,), target_languages=("en", "de"))))
    assert len(found) == 2 * len(ROWS)
    assert {each.target.split(" ", 1)[1] for each in found} == {"a dog", "ein Hund"}


def test_unsupported_media_files_are_not_taken_for_texts(tmp_path: Path) -> None:
    path = table(tmp_path, "t.tsv", "path\tsentence\n" + "".join(f"clip{n}.mp3\thello\n" for n in range(9)))
    with pytest.raises(ValueError, match=r"the sources are \.mp3 files, which are not read; convert them to one of"):
        detect_modality(DataSettings(pairs=(path,)))
    image_table = table(tmp_path, "p.tsv", "image\tcaption\n" + "".join(f"{name}\ta dog\n" for name in ROWS))
    with pytest.raises(ValueError, match="bahdanau reads text, and the sources of these files are images"):
        run_settings("bahdanau", {}, [], {"data": {"pairs": [str(image_table)]}})


@pytest.mark.parametrize(
    ("header", "order", "columns"),
    [
        ("remark\tverdict", "{text}\t{label}", ("remark", "verdict")),
        ("verdict\tremark", "{label}\t{text}", ("remark", "verdict")),
        ("", "{label}\t{text}", (2, 1)),
        ("", "{text}\t{label}", (1, 2)),
        ("text\tlabel", "{text}\t{label}", (None, None)),  # names that are known anyway
    ],
)
def test_the_label_column_is_detected(
    tmp_path: Path, header: str, order: str, columns: tuple[str | int | None, ...]
) -> None:
    rows = [order.format(text=f"film {n} was so and so", label=("good", "bad", "3")[n % 3]) for n in range(30)]
    path = table(tmp_path, "t.tsv", "".join(f"{line}\n" for line in [header] * bool(header) + rows))
    settings = run_settings(None, {}, [], {"data": {"pairs": [str(path)]}}, task="classification")
    assert (settings.data.source_column, settings.data.target_column) == columns
    assert {each.target for each in read_examples(settings.data)} == {"good", "bad", "3"}
    assert len(list(read_examples(settings.data))) == 30


def test_few_distinct_answers_select_the_memory_preset(tmp_path: Path) -> None:
    def preset(answers: list[str]) -> str | None:
        rows = [f"Mary went to the {answer}.\tWhere is Mary?\t{answer}" for answer in answers]
        (tmp_path / "stories.tsv").write_text("story\tquestion\tanswer\n" + "\n".join(rows))
        return run_settings(None, {}, [], {"data": {"pairs": [tmp_path / "stories.tsv"]}}, task="story_qa").preset

    assert preset(["hall", "kitchen", "garden"] * 100) == "memory-network"
    assert preset([f"place {n}" for n in range(300)]) == "story-qa"
    assert preset(["hall", "kitchen"] * 5) == "story-qa", "too few examples to decide"


@pytest.mark.parametrize(
    ("name", "rows", "task"),
    [
        ("n.tsv", "question\tanswer\tstory\nWhat ?\train\tIt rains .\n", "story_qa"),
        ("j.jsonl", '{"context": "It rains.", "question": "What?", "answer": "rain"}\n', "story_qa"),
        ("s.json", '{"data": []}', "span_qa"),
        ("t.tsv", "It rains .\tWhat does it do ?\train\n", "translation"),
    ],
)
def test_the_task_of_question_answering_files_is_detected(tmp_path: Path, name: str, rows: str, task: str) -> None:
    data = DataSettings(pairs=(table(tmp_path, name, rows),))
    assert detect_task(data, detect_modality(data)).name == task


def test_spans_need_a_question(tmp_path: Path) -> None:
    path = table(tmp_path, "two.tsv", "It rains .\train\nIt snows .\tsnow\n")
    with pytest.raises(ValueError, match="context, question and answer"):
        run_settings(None, {}, [], {"data": {"pairs": [str(path)]}}, task="span_qa")


@pytest.mark.parametrize("assigned", [[], ["model.decoder.width=48"]])
def test_the_decoder_of_a_masked_lm_has_the_width_of_its_encoder(tmp_path: Path, assigned: list[str]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("some text\n")
    settings_values = {"data": {"text": [str(path)]}}
    assignments = ["model.encoder.width=64", "model.tie=none", "model.output_bias=false", *assigned]
    model = run_settings(None, {}, assignments, settings_values, task="masked_lm").model
    assert model.decoder.width == (48 if assigned else 64)


def test_tables_are_rejected_as_plain_text(tmp_path: Path) -> None:
    path = table(tmp_path, "a.tsv", "one\tun\n")
    with pytest.raises(ValueError, match="this is a table"):
        list(read_documents(path))


def test_presets_have_a_task() -> None:
    assert RunSettings.parse(preset_settings("memory-network")).task == "story_qa"
    assert RunSettings.parse(preset_settings("bahdanau")).task == "translation"
