"""Other tasks from files to answers, by the real command: trained, interrupted, judged, used, seen."""

import json
from pathlib import Path

import pytest

from regard.data.synthetic.scenes import scenes
from tests.end_to_end.runs import regard, small

TINY = [
    "model.encoder.width=32",
    "model.decoder.width=32",
    "training.tokens=512",
    "training.average=0.9",
    "training.best=2",
    "training.validate_every=6",
    "data.subwords.kind=word",
]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    rows = []
    for number, (scene, picture) in enumerate(scenes(60, split="train", seed=1)):
        picture.save(folder / f"{number}.png")
        rows.append({"file": f"{number}.png", "caption": scene.caption, "label": scene.first.shape})
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "classes.tsv").write_text("".join(f"{row['file']}\t{row['label']}\n" for row in rows))
    return folder


def weights(run: Path) -> bytes:
    return (run / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_captions_from_files_to_the_page(pictures: Path, tmp_path: Path) -> None:
    table, run, shot = pictures / "captions.jsonl", tmp_path / "run", pictures / "3.png"
    told = regard("train", table, "-o", run, "--steps", 12, *small([*TINY, "model.source.size=32"]))
    assert "residual with se over 32 × 32 pixels" in told.stderr + told.stdout
    scores = json.loads(regard("evaluate", run, table, "--json").stdout)
    assert {score["name"] for score in scores["scores"]} >= {"bleu1", "chrf", "rougeL", "cider"}
    said = regard("translate", run, shot, pictures / "4.png").stdout.splitlines()
    assert [line.split("\t")[0] for line in said] == [str(shot), str(pictures / "4.png")]
    missing = regard("translate", run, shot, "none.png", check=False)
    assert missing.returncode == 1
    assert "none.png: there is no such file" in missing.stderr
    for suffix in ("png", "html"):
        regard("see", run, shot, "-o", tmp_path / f"x.{suffix}")
        assert (tmp_path / f"x.{suffix}").stat().st_size > 1000
    drawn = regard("see", run, shot).stdout
    assert "|" in drawn
    assert "--attribution says what would change it" in drawn
    depends = regard("see", run, shot, "--attribution").stdout
    assert "gradient times input" in depends
    assert depends.count("|") == drawn.count("|"), "the same grids of the same words"
    regard("see", run, shot, "--channels", "-o", tmp_path / "channels.png")


@pytest.mark.slow
def test_an_interrupted_run_of_pictures_ends_with_the_same_bits(pictures: Path, tmp_path: Path) -> None:
    """Variations of pictures are drawn from where the run is, like everything else."""
    table = pictures / "captions.jsonl"
    how = small([*TINY, "model.source.size=32", "training.save_every=1"])
    regard("train", table, "-o", tmp_path / "whole", "--steps", 12, *how)
    regard("train", table, "-o", tmp_path / "parts", "--steps", 12, *how)
    for checkpoint in sorted((tmp_path / "parts" / "checkpoints").iterdir())[-1:]:
        if checkpoint.is_dir():
            for file in checkpoint.iterdir():
                file.unlink()
            checkpoint.rmdir()
    resumed = regard("train", "--resume", tmp_path / "parts")
    assert "Resuming at step 1" in resumed.stderr + resumed.stdout, "not from the beginning"
    assert weights(tmp_path / "whole") == weights(tmp_path / "parts")


@pytest.mark.slow
def test_classes_of_pictures_and_of_texts(pictures: Path, tmp_path: Path) -> None:
    run = tmp_path / "shapes"
    regard(
        *("train", pictures / "classes.tsv", "--task", "classification", "-o", run, "--steps", 8),
        *small([*TINY, "model.source.size=32", "model.source.stem.channel_attention=cbam"]),
    )
    report = json.loads(regard("evaluate", run, pictures / "classes.tsv", "--json").stdout)
    assert {score["name"] for score in report["scores"]} == {"exact", "macro_f1"}
    best = regard("classify", run, pictures / "1.png", "--nbest", 2, "--scores").stdout.splitlines()
    assert len(best) == 2
    table = tmp_path / "t.tsv"
    lines = [f"{'yes' if n % 2 else 'no'}\t{'good' if n % 2 else 'bad'} number {n}\n" for n in range(40)]
    table.write_text("label\ttext\n" + "".join(lines))
    words = tmp_path / "words"
    regard("train", table, "--task", "classification", "-o", words, "--steps", 60, *small(TINY))
    assert regard("translate", words, "good number 7").stdout.strip() == "yes"
    assert "yes" in regard("see", words, "good number 7").stdout
    assert "gradient times input" in regard("see", words, "good number 7", "--attribution").stdout
    refused = regard("see", words, "good number 7", "--target", "maybe", check=False)
    assert "there is no class 'maybe'; there are no, yes" in refused.stderr
    blanks = tmp_path / "blanks.tsv"  # what training tidies is tidied when it is judged, too
    blanks.write_text("label\ttext\n" + "".join(line.replace("\t", " \t", 1) for line in lines))
    tidy, untidy = (json.loads(regard("evaluate", words, each, "--json").stdout)["scores"] for each in (table, blanks))
    assert tidy == untidy
    refused = regard("translate", words, "good", "--alignment", check=False)
    assert (refused.returncode, "alignment: this does not apply to a run for classification" in refused.stderr) == (
        2,
        True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("task", ["captioning", "speech", "summarization", "story_qa"])
def test_every_demonstration_runs(task: str, tmp_path: Path) -> None:
    done = regard("demo", "--task", task, "-o", tmp_path / "demo", "--steps", 30, "--json")
    result = json.loads(done.stdout)
    assert result["task"] == task
    assert result["test_examples"] >= 300
    assert (tmp_path / "demo" / "attention.png").stat().st_size > 5000
    assert all(each["attention"] for each in result["examples"])


@pytest.mark.slow
def test_a_question_is_asked_wherever_its_story_comes_from(tmp_path: Path) -> None:
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
    regard(
        "train",
        table,
        "--task",
        "story_qa",
        "-o",
        run,
        "--steps",
        12,
        *small([*TINY, "model.decoder.copy_mechanism=false"]),
    )
    wanted = regard("translate", run, "\t".join(rows[0][:2])).stdout.strip()
    typed = tmp_path / "typed.txt"
    typed.write_text("".join("\t".join(row[:2]) + "\n" for row in rows))
    said = regard("translate", run, "-", give=typed.read_text()).stdout.splitlines()
    assert said[0] == wanted
    out = tmp_path / "out.tsv"
    regard("translate", run, table, "-o", out)
    assert [line.split("\t")[-1] for line in out.read_text().splitlines()[1:]] == said, "a table is asked the same"
    judged = tmp_path / "judged.txt"
    regard("evaluate", run, table, "-o", judged)
    assert judged.read_text().splitlines() == said


@pytest.mark.slow
def test_captions_in_several_rows_are_references_of_one_picture(pictures: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    regard("train", pictures / "captions.jsonl", "-o", run, "--steps", 2, *small([*TINY, "model.source.size=32"]))
    table = tmp_path / "rows.tsv"
    table.write_text("file\tcaption\n" + "".join(f"{n}.png\ta dog\n{n}.png\ta  cat\n" for n in range(5)))
    report = json.loads(regard("evaluate", run, table, "--media", pictures, "--json").stdout)
    assert report["sentences"] == 5
    assert "nrefs:2" in next(score["signature"] for score in report["scores"] if score["name"] == "bleu")
    table.write_text("file\tcaption\n../secret.png\ta dog\n1.png\ta cat\n")
    report = json.loads(regard("evaluate", run, table, "--media", pictures, "--json").stdout)
    assert report["sentences"] == 1
    assert sum(report["set_aside"].values()) == 1


def test_what_can_be_wrong_is_a_sentence(pictures: Path, tmp_path: Path) -> None:
    table = pictures / "captions.jsonl"
    for arguments, why in (
        (("train", table, "--task", "sing", "-o", tmp_path / "x"), "there is no task 'sing'"),
        (("train", table, "--task", "speech", "-o", tmp_path / "x"), "speech needs recordings"),
        (
            ("train", table, "--preset", "vit-caption", "--set", "model.source.size=30", "-o", tmp_path / "x"),
            "do not divide",
        ),
        (("demo", "--task", "sing"), "there is no task 'sing'"),
        (("train", tmp_path, "--task", "classification", "-o", tmp_path / "x"), "a folder for each class"),
    ):
        done = regard(*arguments, check=False)
        assert done.returncode == 2
        assert why in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "x").exists()
