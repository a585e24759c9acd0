"""Captioning, speech, classification, summarization and story QA by the command."""

import json
from pathlib import Path

import pytest

from regard.data.synthetic.scenes import scenes
from tests.end_to_end.commands import run_regard, set_options

TINY = [
    "model.encoder.width=32",
    "model.decoder.width=32",
    "training.batch_tokens=512",
    "training.ema_decay=0.9",
    "training.averaged_checkpoints=2",
    "training.validate_every=6",
    "data.subwords.kind=word",
]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    rows = []
    for number, (scene, image) in enumerate(scenes(60, split="train", seed=1)):
        image.save(folder / f"{number}.png")
        rows.append({"file": f"{number}.png", "caption": scene.caption, "label": scene.first.shape})
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "classes.tsv").write_text("".join(f"{row['file']}\t{row['label']}\n" for row in rows))
    return folder


def weights(run: Path) -> bytes:
    return (run / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_a_captioning_model_is_trained_evaluated_and_shown(images: Path, tmp_path: Path) -> None:
    table, run, image_file = images / "captions.jsonl", tmp_path / "run", images / "3.png"
    trained = run_regard("train", table, "-o", run, "--steps", 12, *set_options([*TINY, "model.source.size=32"]))
    assert "residual with squeeze-excitation over 32 × 32 pixels" in trained.stderr + trained.stdout
    scores = json.loads(run_regard("evaluate", run, table, "--json").stdout)
    assert {score["name"] for score in scores["scores"]} >= {"bleu1", "chrf", "rougeL", "cider"}
    outputs = run_regard("translate", run, image_file, images / "4.png").stdout.splitlines()
    assert [line.split("\t")[0] for line in outputs] == [str(image_file), str(images / "4.png")]
    missing = run_regard("translate", run, image_file, "none.png", check=False)
    assert missing.returncode == 1
    assert "none.png: there is no such file" in missing.stderr
    for suffix in ("png", "html"):
        run_regard("see", run, image_file, "-o", tmp_path / f"x.{suffix}")
        assert (tmp_path / f"x.{suffix}").stat().st_size > 1000
    shown = run_regard("see", run, image_file).stdout
    assert "|" in shown
    assert "--attribution shows what would change it" in shown
    attribution = run_regard("see", run, image_file, "--attribution").stdout
    assert "gradient times input" in attribution
    assert attribution.count("|") == shown.count("|"), "the same grids of the same words"
    run_regard("see", run, image_file, "--channel-attention", "-o", tmp_path / "channels.png")


@pytest.mark.slow
def test_an_interrupted_run_of_images_ends_with_the_same_bits(images: Path, tmp_path: Path) -> None:
    """Image augmentation depends only on the position in the run."""
    table = images / "captions.jsonl"
    options = set_options([*TINY, "model.source.size=32", "training.save_every=1"])
    run_regard("train", table, "-o", tmp_path / "whole", "--steps", 12, *options)
    run_regard("train", table, "-o", tmp_path / "parts", "--steps", 12, *options)
    for checkpoint in sorted((tmp_path / "parts" / "checkpoints").iterdir())[-1:]:
        if checkpoint.is_dir():
            for file in checkpoint.iterdir():
                file.unlink()
            checkpoint.rmdir()
    resumed = run_regard("train", "--resume", tmp_path / "parts")
    assert "Resuming at step 1" in resumed.stderr + resumed.stdout, "not from the beginning"
    assert weights(tmp_path / "whole") == weights(tmp_path / "parts")


@pytest.mark.slow
def test_image_and_text_classification(images: Path, tmp_path: Path) -> None:
    run = tmp_path / "shapes"
    run_regard(
        *("train", images / "classes.tsv", "--task", "classification", "-o", run, "--steps", 8),
        *set_options([*TINY, "model.source.size=32", "model.source.stem.channel_attention=cbam"]),
    )
    report = json.loads(run_regard("evaluate", run, images / "classes.tsv", "--json").stdout)
    assert {score["name"] for score in report["scores"]} == {"exact", "macro_f1"}
    best = run_regard("classify", run, images / "1.png", "--nbest", 2, "--scores").stdout.splitlines()
    assert len(best) == 2
    table = tmp_path / "t.tsv"
    lines = [f"{'yes' if n % 2 else 'no'}\t{'good' if n % 2 else 'bad'} number {n}\n" for n in range(40)]
    table.write_text("label\ttext\n" + "".join(lines))
    text_run = tmp_path / "text_run"
    run_regard("train", table, "--task", "classification", "-o", text_run, "--steps", 60, *set_options(TINY))
    assert run_regard("translate", text_run, "good number 7").stdout.strip() == "yes"
    assert "yes" in run_regard("see", text_run, "good number 7").stdout
    assert "gradient times input" in run_regard("see", text_run, "good number 7", "--attribution").stdout
    refused = run_regard("see", text_run, "good number 7", "--target", "maybe", check=False)
    assert "there is no class 'maybe'; there are no, yes" in refused.stderr
    blanks = tmp_path / "blanks.tsv"  # whitespace is normalized in evaluation as in training
    blanks.write_text("label\ttext\n" + "".join(line.replace("\t", " \t", 1) for line in lines))
    tidy, untidy = (
        json.loads(run_regard("evaluate", text_run, each, "--json").stdout)["scores"] for each in (table, blanks)
    )
    assert tidy == untidy
    refused = run_regard("translate", text_run, "good", "--alignment", check=False)
    assert (refused.returncode, "alignment: this does not apply to a run for classification" in refused.stderr) == (
        2,
        True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("task", ["captioning", "speech", "summarization", "story_qa", "forecasting"])
def test_every_demonstration_runs(task: str, tmp_path: Path) -> None:
    done = run_regard("demo", "--task", task, "-o", tmp_path / "demo", "--steps", 30, "--json")
    result = json.loads(done.stdout)
    assert result["task"] == task
    assert result["test_examples"] >= 300
    assert (tmp_path / "demo" / "attention.png").stat().st_size > 5000
    assert all(each["attention"] for each in result["examples"])


@pytest.mark.slow
def test_story_qa_reads_standard_input_and_tables_alike(tmp_path: Path) -> None:
    names, places = ("Ada", "Ben", "Cem"), ("attic", "barn", "cellar", "den")
    rows = [
        (f"{a} is in the {p} . {b} is in the {q} .", f"Where is {c} ?", {a: p, b: q}[c])
        for a in names
        for b in names
        for p in places
        for q in places
        for c in (a, b)
        if a != b and p != q
    ]
    table = tmp_path / "t.tsv"
    table.write_text("story\tquestion\tanswer\n" + "".join("\t".join(row) + "\n" for row in rows))
    run = tmp_path / "run"
    run_regard(
        "train",
        table,
        "--task",
        "story_qa",
        "-o",
        run,
        "--steps",
        12,
        *set_options([*TINY, "model.decoder.copy_mechanism=false"]),
    )
    expected = run_regard("translate", run, "\t".join(rows[0][:2])).stdout.strip()
    inputs = tmp_path / "inputs.txt"
    inputs.write_text("".join("\t".join(row[:2]) + "\n" for row in rows))
    outputs = run_regard("translate", run, "-", stdin=inputs.read_text()).stdout.splitlines()
    assert outputs[0] == expected
    out = tmp_path / "out.tsv"
    run_regard("translate", run, table, "-o", out)
    assert [line.split("\t")[-1] for line in out.read_text().splitlines()[1:]] == outputs, "a table is asked the same"
    evaluated = tmp_path / "evaluated.txt"
    run_regard("evaluate", run, table, "-o", evaluated)
    assert evaluated.read_text().splitlines() == outputs


@pytest.mark.slow
def test_captions_in_several_rows_are_references_of_one_image(images: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run_regard(
        "train", images / "captions.jsonl", "-o", run, "--steps", 2, *set_options([*TINY, "model.source.size=32"])
    )
    table = tmp_path / "rows.tsv"
    table.write_text("file\tcaption\n" + "".join(f"{n}.png\ta dog\n{n}.png\ta  cat\n" for n in range(5)))
    report = json.loads(run_regard("evaluate", run, table, "--media", images, "--json").stdout)
    assert report["sentences"] == 5
    assert "nrefs:2" in next(score["signature"] for score in report["scores"] if score["name"] == "bleu")
    table.write_text("file\tcaption\n../secret.png\ta dog\n1.png\ta cat\n")
    report = json.loads(run_regard("evaluate", run, table, "--media", images, "--json").stdout)
    assert report["sentences"] == 1
    assert sum(report["rejected"].values()) == 1


@pytest.mark.slow
def test_user_errors_are_one_sentence(images: Path, tmp_path: Path) -> None:
    table = images / "captions.jsonl"
    for arguments, message in (
        (("train", table, "--task", "sing", "-o", tmp_path / "x"), "there is no task 'sing'"),
        (("train", table, "--task", "speech", "-o", tmp_path / "x"), "speech needs recordings"),
        (
            ("train", table, "--preset", "vit-caption", "--set", "model.source.size=30", "-o", tmp_path / "x"),
            "do not divide",
        ),
        (("demo", "--task", "sing"), "there is no task 'sing'"),
        (("train", tmp_path, "--task", "classification", "-o", tmp_path / "x"), "a folder for each class"),
    ):
        done = run_regard(*arguments, check=False)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "x").exists()
