"""Training, evaluation, alignment and views by the command. User errors are one sentence and lose nothing."""

import json
import random
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard.cli import app
from regard.views.storage import load
from tests.end_to_end.commands import run_regard, set_options, write_dates


def cli_error(*arguments: object) -> str:
    done = run_regard(*arguments, check=False)
    assert done.returncode == 2
    (sentence,) = [line for line in done.stderr.splitlines() if not line.startswith("Task: ")]  # what was detected
    assert sentence.startswith("regard: ")
    assert "Traceback" not in done.stderr
    return done.stderr


def invoke(*arguments: object) -> str:
    """Run a command in this process, which saves its startup time. Returns what it prints."""
    done = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def invoke_error(*arguments: object) -> str:
    """The error of a command in this process."""
    with pytest.raises(ValueError, match=r"\w") as caught:
        invoke(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    write_dates(folder / "dates.tsv", 200)
    write_dates(folder / "test.tsv", 20, "test")
    quick = ["--steps", 4, "--set", "training.validate_every=2", "--set", "training.batch_tokens=512"]
    model = ["--preset", "transformer-tiny", *set_options()]
    done = run_regard("train", folder / "dates.tsv", *model, *quick, "-o", folder / "run", "--json")
    result = json.loads(done.stdout)
    assert result["finished"]
    assert result["step"] == 4
    return folder


def test_a_run_writes_its_files_and_is_evaluated(trained: Path) -> None:
    run = trained / "run"
    for name in ("settings.toml", "model.toml", "model.safetensors", "log.jsonl", "curves.png", "source.subwords"):
        assert (run / name).stat().st_size > 0
    with (trained / "test.tsv").open("a") as test:
        test.write("1 2 " * 200 + "\t2001-02-03\n")
    done = run_regard("evaluate", run, trained / "test.tsv", "--json", "--beam", 2, "--metric", "exact,cer,bleu")
    result = json.loads(done.stdout)
    assert [score["name"] for score in result["scores"]] == ["exact", "cer", "bleu"]
    assert result["sentences"] == 21
    assert result["split_sources"] == 1


def test_evaluation_uses_the_engines_of_inference(trained: Path) -> None:
    scores_by_engine = {}
    for options in (("--engine", "torch"), (), ("--precision", "int8")):
        done = run_regard("evaluate", trained / "run", trained / "test.tsv", "--json", "--metric", "exact", *options)
        scores_by_engine[json.loads(done.stdout)["engine"]] = json.loads(done.stdout)["scores"][0]["value"]
    assert list(scores_by_engine) == ["PyTorch", "the native engine, float32", "the native engine, int8"]
    assert len(set(list(scores_by_engine.values())[:2])) == 1


def test_user_errors_are_one_sentence(trained: Path, tmp_path: Path) -> None:
    data, run = trained / "dates.tsv", trained / "run"
    assert "there is no such file" in cli_error("train", tmp_path / "none.tsv", "-o", tmp_path / "a")
    assert "did you mean bahdanau?" in cli_error("train", data, "--preset", "bahdanua", "-o", tmp_path / "a")
    assert "did you mean layers?" in cli_error("train", data, "-o", tmp_path / "a", "--set", "model.encoder.layrs=2")
    assert "go on with it by --resume" in cli_error("train", data, "-o", run)
    assert "this is not a run" in cli_error("train", "--resume", tmp_path)
    assert "this is not a run" in cli_error("evaluate", tmp_path, data)
    assert "there is no such folder" in cli_error("evaluate", tmp_path / "none", data)
    assert "name the folder of the run" in cli_error("train", data)
    assert "a preset is chosen with --preset" in cli_error("train", data, "-o", tmp_path / "a", "--set", "preset=luong")
    assert "less than 9223372036854775808" in cli_error("train", data, "-o", tmp_path / "a", "--seed", 10**20)
    assert "there is no 'foo'" in cli_error("evaluate", run, data, "--tokenize", "foo")
    assert "it must be at least 1" in cli_error("evaluate", run, data, "--beam", 0)
    assert not list(tmp_path.iterdir()), "nothing was left behind"
    before = sorted(path.name for path in run.iterdir())
    assert "it exists and is not a run" in cli_error("train", data, "-o", trained)
    assert sorted(path.name for path in run.iterdir()) == before


@pytest.mark.slow
def test_a_resumed_run_uses_its_prepared_data(trained: Path, tmp_path: Path) -> None:
    data, run = tmp_path / "dates.tsv", tmp_path / "run"
    shutil.copy(trained / "dates.tsv", data)
    model = ["--preset", "transformer-tiny", *set_options(), "--set", "training.batch_tokens=512"]
    run_regard("train", data, *model, "--steps", 2, "-o", run)
    before = (run / "data" / "source.subwords").read_bytes()
    data.write_text("quite\tanother\n" * 50)
    assert json.loads(run_regard("train", "--resume", run, "--steps", 4, "--json").stdout)["step"] == 4
    assert (run / "data" / "source.subwords").read_bytes() == before
    assert "has 4 steps already" in cli_error("train", "--resume", run, "--steps", 3)
    data.write_text("".join(f"{number}\t{number}\n" for number in range(300)))
    shutil.rmtree(run / "data")
    assert "have changed since" in cli_error("train", "--resume", run, "--steps", 6)


@pytest.mark.slow
def test_overwrite_replaces_a_run_only_after_its_data_is_prepared(trained: Path, tmp_path: Path) -> None:
    run, same_language = tmp_path / "run", tmp_path / "same.tsv"
    shutil.copytree(trained / "run", run)
    same_language.write_text("one\tun\n" * 30)
    before = sorted(path.name for path in run.iterdir())
    assert "name other examples with --valid" in cli_error("train", same_language, "-o", run, "--overwrite")
    assert sorted(path.name for path in run.iterdir() if path.name != ".lock") == [n for n in before if n != ".lock"]
    quick = ["--preset", "transformer-tiny", *set_options(), "--steps", 1]
    run_regard("train", trained / "dates.tsv", *quick, "-o", run, "--overwrite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "same.tsv"]


def test_a_file_of_outputs_is_compared_with_a_run(trained: Path, tmp_path: Path) -> None:
    pairs = [line.split("\t") for line in (trained / "test.tsv").read_text().splitlines()[:20]]
    source, target = tmp_path / "test.in", tmp_path / "test.out"
    source.write_text("".join(f"{pair[0]}\n" for pair in pairs))
    target.write_text("".join(f"{pair[1]}\n" for pair in pairs))
    outputs = ["--outputs", target, "--reference", target, "--compare", trained / "run"]
    assert "--source" in cli_error("evaluate", *outputs)
    done = run_regard("evaluate", *outputs, "--source", source, "--metric", "CER", "--json", "--beam", 1)
    alone = run_regard(
        "evaluate", trained / "run", "--source", source, "--reference", target, "--metric", "cer", "--json"
    )
    ((compared,), (alone_score,)) = json.loads(done.stdout)["comparison"], json.loads(alone.stdout)["scores"]
    assert compared["first"] == 0
    assert compared["second"] == pytest.approx(alone_score["value"], rel=0.2)


@pytest.mark.slow
def test_pairs_are_aligned_line_by_line(trained: Path, tmp_path: Path) -> None:
    run, test = trained / "run", tmp_path / "test.tsv"
    some = trained.joinpath("test.tsv").read_text().splitlines(keepends=True)[:5]
    test.write_text("".join([*some, "1 2 " * 200 + "\tx\n"]))
    done = run_regard("align", run, test)
    lines = done.stdout.split("\n")
    assert len(lines) == 7
    assert "1 pair is longer than the model reads: an empty line." in done.stderr
    assert all(lines[:5])
    assert lines[5:] == ["", ""]
    (tmp_path / "gold").write_text(done.stdout)
    found = json.loads(invoke("evaluate", run, test, "--gold", tmp_path / "gold", "--json"))
    assert (found["aer"], found["precision"], found["recall"], found["sentences"]) == (0, 100, 100, 6)
    reversed_run = shutil.copytree(run, tmp_path / "reversed")
    both = invoke("align", run, test, "--backward", reversed_run, "--symmetrize", "union", "--json").splitlines()
    record = json.loads(both[0])
    assert record["links"]
    assert set(lines[0].split()) <= {f"{a}-{b}" for a, b in record["links"]}
    assert "there is no 'x'" in invoke_error("align", run, test, "--symmetrize", "x")
    assert "given with --backward" in invoke_error("align", run, test, "--symmetrize", "union")
    assert "is no run from the target's language" in invoke_error("align", run, test, "--backward", run)
    (tmp_path / "gaps.tsv").write_text("1 May\t2001-05-01\n\n2 May\t2001-05-02\n")
    done = run_regard("align", run, tmp_path / "gaps.tsv")
    assert "3 lines, 2 pairs; lines without a pair have none here" in done.stderr
    assert "name pairs to align" in invoke_error("align", run)
    assert "give the right ones with --gold" in invoke_error("evaluate", "--links", tmp_path / "gold")


def test_see_prints_and_saves_attention(trained: Path, tmp_path: Path) -> None:
    run = trained / "run"
    shown = run_regard("see", run, "3 March 2022", "--target", "2022-03-03").stdout
    assert "which aligns best" in shown
    assert not any(line.strip().startswith("2022-03-03") for line in shown.splitlines()), (
        "one word: its tokens are shown"
    )
    assert "Attention weights show where a model attended, not why" in shown
    record = json.loads(invoke("see", run, "3 March 2022", "--target", "2022-03-03", "--json", "--attribution"))
    assert sorted(record["weights"]) == ["cross", "decoder", "encoder"]
    assert record["attribution"]["source"]
    assert record["model"] == "run"
    assert "".join(record["target"]["labels"][:-1]).strip("▁") == "2022-03-03"
    for name in ("a.png", "a.svg", "a.json", "a.safetensors"):
        invoke("see", run, "3 March 2022", "-o", tmp_path / name, "--kind", "encoder", "--layer", 1, "--head", 2)
        assert (tmp_path / name).stat().st_size > 1000
    assert load(tmp_path / "a.json").source == load(tmp_path / "a.safetensors").source
    for arguments, message in (
        (("x", "--kind", "foo"), "there are cross, encoder, decoder"),
        (("x", "-o", "a.gif"), "must end in .png"),
        (("",), "the source is empty"),
        (("x", "--layer", 9), "--layer: there are 1; there is no 9"),
        (("x", "--attribution", "--head", 1), "it has no kind, layer or head"),
        (("x", "--json", "-o", "a.json"), "--json: it prints what -o x.json writes"),
        (("x", "-o", "a.png", "--top", 3), "--top: it is for .json"),
        (("x", "-o", "a.html", "--layer", 9), "--layer: there are 1; there is no 9"),
    ):
        assert message in invoke_error("see", run, *arguments)


def test_see_over_time_shows_each_validation(trained: Path, tmp_path: Path) -> None:
    run = trained / "run"
    assert sorted(path.name for path in (run / "attention").iterdir()) == [
        "00000002.safetensors",
        "00000004.safetensors",
    ]
    shown = invoke("see", run, "--over-time")
    assert "step 2" in shown
    assert "step 4" in shown
    for name in ("strip.png", "strip.svg", "time.html"):
        invoke("see", run, "--over-time", "-o", tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    assert "text: this does not apply to --over-time" in invoke_error("see", run, "x", "--over-time")
    assert "--beam: this does not apply" in invoke_error("see", run, "--over-time", "--beam", "3")
    assert "name a text" in invoke_error("see", run)


def test_invalid_pairs_are_rejected_in_evaluation(trained: Path, tmp_path: Path) -> None:
    run, dates = trained / "run", (trained / "test.tsv").read_text().splitlines()[:4]
    rows = [*dates, "no tab", "empty\t", "\tempty", "contr\x07ol\t2001-02-03"]
    (tmp_path / "test.tsv").write_text("".join(f"{row}\n" for row in rows))
    result = json.loads(invoke("evaluate", run, tmp_path / "test.tsv", "--metric", "exact,exact", "--json"))
    assert result["sentences"] == 4
    assert len(result["scores"]) == 1
    reasons = {"only 1 column(s)": 1, "empty target": 1, "empty source": 1, "control characters": 1}
    assert result["rejected"] == reasons
    stdout = invoke("evaluate", run, tmp_path / "test.tsv", "--metric", "exact")
    assert stdout.startswith("4 sentences; rejected: 1 control characters, 1 empty source")
    (tmp_path / "test.tsv").write_text("no tab\n")
    catalog = 'msgid "a"\nmsgstr "b"\n\nmsgid "c"\nmsgstr ""\n\n#, fuzzy\nmsgid "d"\nmsgstr "e"\n'
    (tmp_path / "test.po").write_text(catalog)
    assert json.loads(invoke("evaluate", run, tmp_path / "test.po", "--json"))["sentences"] == 1


@pytest.mark.slow
def test_evaluation_uses_the_columns_of_training(trained: Path, tmp_path: Path) -> None:
    rows = [line.split("\t") for line in (trained / "dates.tsv").read_text().splitlines()]
    data, run = tmp_path / "dates.tsv", tmp_path / "run"
    data.write_text("".join(f"{number}\t{b}\t{a}\n" for number, (a, b) in enumerate(rows)))
    columns = ["--set", "data.source_column=3", "--set", "data.target_column=2"]
    run_regard("train", data, "--preset", "transformer-tiny", *set_options(), *columns, "--steps", 1, "-o", run)
    own = json.loads(invoke("evaluate", run, data, "--metric", "cer", "--json"))
    same = ["--source-column", 3, "--target-column", 2]
    explicit = json.loads(invoke("evaluate", run, data, *same, "--metric", "cer", "--json"))
    other = json.loads(invoke("evaluate", run, data, "--source-column", 1, "--metric", "cer", "--json"))
    assert own["scores"] == explicit["scores"] != other["scores"]


@pytest.mark.slow
def test_a_run_without_checkpoints_is_not_trained_again(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained / "run", run)
    log = (run / "log.jsonl").read_text()
    done = run_regard("train", "--resume", run)
    assert "This run is finished, after 4 steps; give it more by --steps or --minutes" in done.stderr
    ends = [line for line in (run / "log.jsonl").read_text().splitlines() if '"end"' in line]
    assert len(ends) == 1
    for path in (run / "checkpoints").rglob("weights.safetensors"):
        path.write_bytes(path.read_bytes()[:-100])
    damaged = run_regard("train", "--resume", run, check=False)
    assert damaged.returncode == 2
    assert "no checkpoint is intact, so this run cannot continue" in damaged.stderr
    shutil.rmtree(run / "checkpoints")
    assert "its checkpoints are gone" in cli_error("train", "--resume", run)
    assert len((run / "log.jsonl").read_text().splitlines()) == len(log.splitlines())


def test_a_wrong_pair_of_languages_is_one_sentence(tmp_path: Path) -> None:
    unit = '<tu><tuv xml:lang="en"><seg>one</seg></tuv><tuv xml:lang="fr"><seg>un</seg></tuv></tu>'
    memory = tmp_path / "memory.tmx"
    memory.write_text(f'<tmx version="1.4"><header srclang="en"/><body>{unit * 3}</body></tmx>')
    assert "its languages are en, fr" in cli_error(
        "train", memory, "--from", "en", "--to", "de", "-o", tmp_path / "run"
    )


@pytest.mark.slow
def test_guided_alignment_trains_the_attention(tmp_path: Path) -> None:
    """The target copies the source but links are reversed, which a model would not learn unguided."""
    draw = random.Random(1)
    lines = [draw.sample(["red", "green", "blue", "white", "black"], 4) for _ in range(300)]
    for name in ("train.a", "train.b"):
        (tmp_path / name).write_text("".join(f"{' '.join(line)}\n" for line in lines))
    (tmp_path / "links").write_text("0-3 1-2 2-1 3-0\n" * 300)
    files = ["--source", tmp_path / "train.a", "--target", tmp_path / "train.b", "--alignment", tmp_path / "links"]
    options = [
        "training.alignment_weight=3",
        "training.batch_tokens=512",
        "training.learning_rate=0.005",
        "data.subwords.kind=word",
    ]
    sizes = ["--steps", 60, "--set", "training.warmup_steps=10", "--set", "model.decoder.layers=3"]
    model = ["--preset", "transformer-tiny", *set_options(options), *sizes]
    invoke("train", *files, *model, "-o", tmp_path / "run", "--quiet")
    assert json.loads((tmp_path / "run" / "alignment.json").read_text()) == {"layer": 1, "head": 0, "shifted": True}
    texts = ["--source", tmp_path / "train.a", "--target", tmp_path / "train.b"]
    found = invoke("align", tmp_path / "run", *texts).split()
    assert sum(link in ("0-3", "1-2", "2-1", "3-0") for link in found) > 0.9 * 4 * 300
    for preset, message in (("vanilla-rnn", "cannot learn where to attend"), ("hard", "by its draws alone")):
        assert message in invoke_error("train", *files, "--preset", preset, "-o", tmp_path / "other")
    (tmp_path / "links").write_text("0-3\n")
    assert "each pair needs a line of links" in invoke_error("train", *files, "-o", tmp_path / "other")
    assert not (tmp_path / "other").exists()
