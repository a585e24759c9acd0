"""Everything a user can get wrong ends in one sentence and loses nothing."""

import json
import random
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard.cli import app
from regard.views.storage import load
from tests.end_to_end.runs import regard, small, write_dates


def refused(*arguments: object) -> str:
    done = regard(*arguments, check=False)
    assert done.returncode == 2
    (sentence,) = [line for line in done.stderr.splitlines() if not line.startswith("Task: ")]  # what was detected
    assert sentence.startswith("regard: ")
    assert "Traceback" not in done.stderr
    return done.stderr


def told(*arguments: object) -> str:
    """What a command prints, in this process: most of a command's time is its start."""
    done = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def denied(*arguments: object) -> str:
    """What a command that is refused says."""
    with pytest.raises(ValueError, match=r"\w") as caught:
        told(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    write_dates(folder / "dates.tsv", 200)
    write_dates(folder / "test.tsv", 20, "test")
    quick = ["--steps", 4, "--set", "training.validate_every=2", "--set", "training.tokens=512"]
    done = regard(
        "train", folder / "dates.tsv", "--preset", "transformer-tiny", *small(), *quick, "-o", folder / "run", "--json"
    )
    result = json.loads(done.stdout)
    assert result["finished"]
    assert result["step"] == 4
    return folder


def test_a_run_says_what_it_does_and_leaves_what_it_promised(trained: Path) -> None:
    run = trained / "run"
    for name in ("settings.toml", "model.toml", "model.safetensors", "log.jsonl", "curves.png", "source.subwords"):
        assert (run / name).stat().st_size > 0
    with (trained / "test.tsv").open("a") as test:
        test.write("1 2 " * 200 + "\t2001-02-03\n")
    done = regard("evaluate", run, trained / "test.tsv", "--json", "--beam", 2, "--metric", "exact,cer,bleu")
    result = json.loads(done.stdout)
    assert [score["name"] for score in result["scores"]] == ["exact", "cer", "bleu"]
    assert result["sentences"] == 21
    assert result["sources_in_parts"] == 1


def test_a_run_is_judged_as_it_is_served(trained: Path) -> None:
    judged = {}
    for how in (("--engine", "torch"), (), ("--precision", "int8")):
        done = regard("evaluate", trained / "run", trained / "test.tsv", "--json", "--metric", "exact", *how)
        judged[json.loads(done.stdout)["engine"]] = json.loads(done.stdout)["scores"][0]["value"]
    assert list(judged) == ["PyTorch", "the native engine, float32", "the native engine, int8"]
    assert len(set(list(judged.values())[:2])) == 1


def test_mistakes_are_one_sentence(trained: Path, tmp_path: Path) -> None:
    data, run = trained / "dates.tsv", trained / "run"
    assert "there is no such file" in refused("train", tmp_path / "none.tsv", "-o", tmp_path / "a")
    assert "did you mean bahdanau?" in refused("train", data, "--preset", "bahdanua", "-o", tmp_path / "a")
    assert "did you mean layers?" in refused("train", data, "-o", tmp_path / "a", "--set", "model.encoder.layrs=2")
    assert "go on with it by --resume" in refused("train", data, "-o", run)
    assert "this is not a run" in refused("train", "--resume", tmp_path)
    assert "this is not a run" in refused("evaluate", tmp_path, data)
    assert "there is no such folder" in refused("evaluate", tmp_path / "none", data)
    assert "name the folder of the run" in refused("train", data)
    assert "a preset is chosen with --preset" in refused("train", data, "-o", tmp_path / "a", "--set", "preset=luong")
    assert "less than 9223372036854775808" in refused("train", data, "-o", tmp_path / "a", "--seed", 10**20)
    assert "there is no 'foo'" in refused("evaluate", run, data, "--tokenize", "foo")
    assert "it must be at least 1" in refused("evaluate", run, data, "--beam", 0)
    assert not list(tmp_path.iterdir()), "nothing was left behind"
    before = sorted(path.name for path in run.iterdir())
    assert "it exists and is not a run" in refused("train", data, "-o", trained)
    assert sorted(path.name for path in run.iterdir()) == before


@pytest.mark.slow
def test_a_run_goes_on_with_its_own_data(trained: Path, tmp_path: Path) -> None:
    data, run = tmp_path / "dates.tsv", tmp_path / "run"
    shutil.copy(trained / "dates.tsv", data)
    model = ["--preset", "transformer-tiny", *small(), "--set", "training.tokens=512"]
    regard("train", data, *model, "--steps", 2, "-o", run)
    before = (run / "data" / "source.subwords").read_bytes()
    data.write_text("quite\tanother\n" * 50)
    assert json.loads(regard("train", "--resume", run, "--steps", 4, "--json").stdout)["step"] == 4
    assert (run / "data" / "source.subwords").read_bytes() == before
    assert "has 4 steps already" in refused("train", "--resume", run, "--steps", 3)
    data.write_text("".join(f"{number}\t{number}\n" for number in range(300)))
    shutil.rmtree(run / "data")
    assert "have changed since" in refused("train", "--resume", run, "--steps", 6)


@pytest.mark.slow
def test_a_run_is_replaced_only_when_the_new_data_could_be_read(trained: Path, tmp_path: Path) -> None:
    run, wrong = tmp_path / "run", tmp_path / "same.tsv"
    shutil.copytree(trained / "run", run)
    wrong.write_text("one\tun\n" * 30)
    before = sorted(path.name for path in run.iterdir())
    assert "name other examples with --valid" in refused("train", wrong, "-o", run, "--overwrite")
    assert sorted(path.name for path in run.iterdir() if path.name != ".lock") == [n for n in before if n != ".lock"]
    quick = ["--preset", "transformer-tiny", *small(), "--steps", 1]
    regard("train", trained / "dates.tsv", *quick, "-o", run, "--overwrite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "same.tsv"]


def test_a_file_of_outputs_is_compared_with_a_run(trained: Path, tmp_path: Path) -> None:
    pairs = [line.split("\t") for line in (trained / "test.tsv").read_text().splitlines()[:20]]
    source, target = tmp_path / "test.in", tmp_path / "test.out"
    source.write_text("".join(f"{pair[0]}\n" for pair in pairs))
    target.write_text("".join(f"{pair[1]}\n" for pair in pairs))
    outputs = ["--outputs", target, "--reference", target, "--compare", trained / "run"]
    assert "--source" in refused("evaluate", *outputs)
    done = regard("evaluate", *outputs, "--source", source, "--metric", "CER", "--json", "--beam", 1)
    alone = regard("evaluate", trained / "run", "--source", source, "--reference", target, "--metric", "cer", "--json")
    ((compared,), (alone_score,)) = json.loads(done.stdout)["comparison"], json.loads(alone.stdout)["scores"]
    assert compared["first"] == 0
    assert compared["second"] == pytest.approx(alone_score["value"], rel=0.2)


@pytest.mark.slow
def test_pairs_are_aligned_line_by_line(trained: Path, tmp_path: Path) -> None:
    run, test = trained / "run", tmp_path / "test.tsv"
    some = trained.joinpath("test.tsv").read_text().splitlines(keepends=True)[:5]
    test.write_text("".join([*some, "1 2 " * 200 + "\tx\n"]))
    done = regard("align", run, test)
    lines = done.stdout.split("\n")
    assert len(lines) == 7
    assert "1 pair is longer than the model reads: an empty line." in done.stderr
    assert all(lines[:5])
    assert lines[5:] == ["", ""]
    (tmp_path / "gold").write_text(done.stdout)
    found = json.loads(told("evaluate", run, test, "--gold", tmp_path / "gold", "--json"))
    assert (found["aer"], found["precision"], found["recall"], found["sentences"]) == (0, 100, 100, 6)
    turned = shutil.copytree(run, tmp_path / "turned")
    both = told("align", run, test, "--backward", turned, "--symmetrize", "union", "--json").splitlines()
    record = json.loads(both[0])
    assert record["links"]
    assert set(lines[0].split()) <= {f"{a}-{b}" for a, b in record["links"]}
    assert "there is no 'x'" in denied("align", run, test, "--symmetrize", "x")
    assert "given with --backward" in denied("align", run, test, "--symmetrize", "union")
    assert "is no run from the target's language" in denied("align", run, test, "--backward", run)
    (tmp_path / "gaps.tsv").write_text("1 May\t2001-05-01\n\n2 May\t2001-05-02\n")
    assert "3 lines, 2 pairs; lines without a pair have none here" in regard("align", run, tmp_path / "gaps.tsv").stderr
    assert "name pairs to align" in denied("align", run)
    assert "give the right ones with --gold" in denied("evaluate", "--links", tmp_path / "gold")


def test_attention_is_seen(trained: Path, tmp_path: Path) -> None:
    run = trained / "run"
    drawn = regard("see", run, "3 March 2022", "--target", "2022-03-03").stdout
    assert "which aligns best" in drawn
    assert not any(line.strip().startswith("2022-03-03") for line in drawn.splitlines()), (
        "one word: its tokens are shown"
    )
    assert "Weights say where a model looked, not why" in drawn
    record = json.loads(told("see", run, "3 March 2022", "--target", "2022-03-03", "--json", "--attribution"))
    assert sorted(record["weights"]) == ["cross", "decoder", "encoder"]
    assert record["attribution"]["source"]
    assert record["model"] == "run"
    assert "".join(record["target"]["labels"][:-1]).strip("▁") == "2022-03-03"
    for name in ("a.png", "a.svg", "a.json", "a.safetensors"):
        told("see", run, "3 March 2022", "-o", tmp_path / name, "--kind", "encoder", "--layer", 1, "--head", 2)
        assert (tmp_path / name).stat().st_size > 1000
    assert load(tmp_path / "a.json").source == load(tmp_path / "a.safetensors").source
    for wrong, message in (
        (("x", "--kind", "foo"), "there are cross, encoder, decoder"),
        (("x", "-o", "a.gif"), "must end in .png"),
        (("",), "the source is empty"),
        (("x", "--layer", 9), "--layer: there are 1; there is no 9"),
        (("x", "--attribution", "--head", 1), "it has no kind, layer or head"),
        (("x", "--json", "-o", "a.json"), "--json: it prints what -o x.json writes"),
        (("x", "-o", "a.png", "--top", 3), "--top: it is for .json"),
        (("x", "-o", "a.html", "--layer", 9), "--layer: there are 1; there is no 9"),
    ):
        assert message in denied("see", run, *wrong)


def test_alignment_is_seen_as_it_forms(trained: Path, tmp_path: Path) -> None:
    run = trained / "run"
    assert sorted(path.name for path in (run / "attention").iterdir()) == [
        "00000002.safetensors",
        "00000004.safetensors",
    ]
    drawn = told("see", run, "--over-time")
    assert "step 2" in drawn
    assert "step 4" in drawn
    for name in ("strip.png", "strip.svg", "time.html"):
        told("see", run, "--over-time", "-o", tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    assert "leave out texts" in denied("see", run, "x", "--over-time")
    assert "name a text" in denied("see", run)


def test_what_has_no_two_sides_is_no_test_sentence(trained: Path, tmp_path: Path) -> None:
    run, dates = trained / "run", (trained / "test.tsv").read_text().splitlines()[:4]
    rows = [*dates, "no tab", "empty\t", "\tempty", "contr\x07ol\t2001-02-03"]
    (tmp_path / "test.tsv").write_text("".join(f"{row}\n" for row in rows))
    result = json.loads(told("evaluate", run, tmp_path / "test.tsv", "--metric", "exact,exact", "--json"))
    assert result["sentences"] == 4
    assert len(result["scores"]) == 1
    reasons = {"only 1 column(s)": 1, "empty target": 1, "empty source": 1, "control characters": 1}
    assert result["set_aside"] == reasons
    said = told("evaluate", run, tmp_path / "test.tsv", "--metric", "exact")
    assert said.startswith("4 sentences; set aside: 1 control characters, 1 empty source")
    (tmp_path / "test.tsv").write_text("no tab\n")
    catalog = 'msgid "a"\nmsgstr "b"\n\nmsgid "c"\nmsgstr ""\n\n#, fuzzy\nmsgid "d"\nmsgstr "e"\n'
    (tmp_path / "test.po").write_text(catalog)
    assert json.loads(told("evaluate", run, tmp_path / "test.po", "--json"))["sentences"] == 1


@pytest.mark.slow
def test_a_run_s_own_columns_are_those_it_is_judged_by(trained: Path, tmp_path: Path) -> None:
    rows = [line.split("\t") for line in (trained / "dates.tsv").read_text().splitlines()]
    data, run = tmp_path / "dates.tsv", tmp_path / "run"
    data.write_text("".join(f"{number}\t{b}\t{a}\n" for number, (a, b) in enumerate(rows)))
    columns = ["--set", "data.source_column=3", "--set", "data.target_column=2"]
    regard("train", data, "--preset", "transformer-tiny", *small(), *columns, "--steps", 1, "-o", run)
    own = json.loads(told("evaluate", run, data, "--metric", "cer", "--json"))
    same = ["--source-column", 3, "--target-column", 2]
    asked = json.loads(told("evaluate", run, data, *same, "--metric", "cer", "--json"))
    other = json.loads(told("evaluate", run, data, "--source-column", 1, "--metric", "cer", "--json"))
    assert own["scores"] == asked["scores"] != other["scores"]


@pytest.mark.slow
def test_a_run_without_whole_checkpoints_is_not_trained_anew_unasked(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained / "run", run)
    log = (run / "log.jsonl").read_text()
    done = regard("train", "--resume", run)
    assert "This run is finished, after 4 steps; give it more by --steps or --minutes" in done.stderr
    ends = [line for line in (run / "log.jsonl").read_text().splitlines() if '"end"' in line]
    assert len(ends) == 1
    for path in (run / "checkpoints").rglob("weights.safetensors"):
        path.write_bytes(path.read_bytes()[:-100])
    damaged = regard("train", "--resume", run, check=False)
    assert damaged.returncode == 2
    assert "no checkpoint is whole, so this run cannot go on" in damaged.stderr
    shutil.rmtree(run / "checkpoints")
    assert "its checkpoints are gone" in refused("train", "--resume", run)
    assert len((run / "log.jsonl").read_text().splitlines()) == len(log.splitlines())


def test_a_wrong_pair_of_languages_is_one_sentence(tmp_path: Path) -> None:
    unit = '<tu><tuv xml:lang="en"><seg>one</seg></tuv><tuv xml:lang="fr"><seg>un</seg></tuv></tu>'
    memory = tmp_path / "memory.tmx"
    memory.write_text(f'<tmx version="1.4"><header srclang="en"/><body>{unit * 3}</body></tmx>')
    assert "its languages are en, fr" in refused("train", memory, "--from", "en", "--to", "de", "-o", tmp_path / "run")


@pytest.mark.slow
def test_attention_looks_where_links_say(tmp_path: Path) -> None:
    """CopyDistribution words, linked backwards on purpose: no model would look there unless it is told to."""
    draw = random.Random(1)
    lines = [draw.sample(["red", "green", "blue", "white", "black"], 4) for _ in range(300)]
    for name in ("train.a", "train.b"):
        (tmp_path / name).write_text("".join(f"{' '.join(line)}\n" for line in lines))
    (tmp_path / "links").write_text("0-3 1-2 2-1 3-0\n" * 300)
    files = ["--source", tmp_path / "train.a", "--target", tmp_path / "train.b", "--alignment", tmp_path / "links"]
    how = [
        "training.alignment_weight=3",
        "training.tokens=512",
        "training.learning_rate=0.005",
        "data.subwords.kind=word",
    ]
    sizes = ["--steps", 60, "--set", "training.warmup=10", "--set", "model.decoder.layers=3"]
    told("train", *files, "--preset", "transformer-tiny", *small(how), *sizes, "-o", tmp_path / "run", "--quiet")
    assert json.loads((tmp_path / "run" / "alignment.json").read_text()) == {"layer": 1, "head": 0, "shifted": True}
    sides = ["--source", tmp_path / "train.a", "--target", tmp_path / "train.b"]
    found = told("align", tmp_path / "run", *sides).split()
    assert sum(link in ("0-3", "1-2", "2-1", "3-0") for link in found) > 0.9 * 4 * 300
    for preset, why in (("vanilla-rnn", "cannot learn where to attend"), ("hard", "by its draws alone")):
        assert why in denied("train", *files, "--preset", preset, "-o", tmp_path / "other")
    (tmp_path / "links").write_text("0-3\n")
    assert "each pair needs a line of links" in denied("train", *files, "-o", tmp_path / "other")
    assert not (tmp_path / "other").exists()
