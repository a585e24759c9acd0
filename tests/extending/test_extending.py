"""Every extension in docs/extending.md is one file outside the package, and works with the command line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.runs.bundle import save_bundle
from tests.bundles import random_bundle
from tests.serving.conftest import Server

HERE = Path(__file__).parent
DOCUMENT = HERE.parent.parent / "docs" / "extending.md"
EXTENSIONS = sorted(path for path in HERE.glob("*.py") if not path.name.startswith(("__", "test_")))
MAX_LINES = 60


def run_regard(*arguments: str | Path, code: int = 0) -> str:
    """The standard output of a command, or the error of a failing one."""
    command = [sys.executable, "-m", "regard", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    words = ["red cat", "green dog", "blue house", "old tree", "new river", "small hill"]
    path.write_text("".join(f"{words[n % 6]} {n}\t{n} {words[n % 6][::-1]}\n" for n in range(120)))
    return path


SMALL_MODEL = [f"model.{part}.{name}=16" for part in ("encoder", "decoder") for name in ("width", "embedding")]
SETTINGS = [option for each in (*SMALL_MODEL, "training.validate_every=20") for option in ("--set", each)]


@pytest.mark.parametrize("path", EXTENSIONS, ids=lambda path: path.stem)
def test_an_extension_is_short_and_shown_in_the_docs(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MAX_LINES
    assert text.strip() in DOCUMENT.read_text()


def test_the_docs_show_no_other_extensions() -> None:
    printed = re.findall(r"```py\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert sorted(each.strip() for each in printed) == sorted(path.read_text().strip() for path in EXTENSIONS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "axis", "name"),
    [("negative_distance.py", "score", "negative-distance"), ("relu_normalizer.py", "normalizer", "relu")],
)
def test_an_attention_extension_is_found_by_name(file: str, axis: str, name: str, tmp_path: Path) -> None:
    code = f"""
import torch
from pathlib import Path
from regard.plugins import load_file
load_file(Path({str(HERE / file)!r}))
from regard.attention import Attention, attend
q = torch.randn(2, 2, 5, 8)
name = dict({"normalize" if axis == "normalizer" else axis}={name!r})
fast = attend(q, q, q, **name)
exact = attend(q.double(), q.double(), q.double(), backend="reference", **name)
torch.testing.assert_close(fast.double(), exact, atol=1e-4, rtol=1e-4)
Attention(16, heads=2, **name)(torch.randn(2, 5, 16))
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert name in run_regard("--plugin", HERE / file, "attention", "show", name)
    run_regard("--plugin", HERE / file, "attention", "gallery", "-o", tmp_path / "gallery.html")
    assert name in (tmp_path / "gallery.html").read_text()
    assert "there is no mechanism" in run_regard("attention", "show", name, code=2), "without the plugin"


def test_a_score_trains_with_a_preset_and_a_run_requires_its_plugin(pairs: Path, tmp_path: Path) -> None:
    plugin = HERE / "negative_distance.py"
    score = ["--preset", "bahdanau", "--set", "model.decoder.score=negative-distance"]
    run_regard(
        "--plugin", plugin, "train", pairs, "-o", tmp_path / "run", *score, *SETTINGS, "--steps", "20", "--quiet"
    )
    assert run_regard("--plugin", plugin, "translate", tmp_path / "run", "red cat 3").count("\n") == 1
    error = run_regard("translate", tmp_path / "run", "red cat 3", code=2)
    assert "this run needs the plugin score.negative-distance, which is missing; load its file with --plugin" in error


def test_a_metric_evaluates_and_selects_checkpoints(pairs: Path, tmp_path: Path) -> None:
    plugin = HERE / "first_word.py"
    metric = ["--preset", "bahdanau", "--set", "training.metric=first_word"]
    run_regard(
        "--plugin", plugin, "train", pairs, "-o", tmp_path / "run", *metric, *SETTINGS, "--steps", "20", "--quiet"
    )
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert any(record.get("metric") == "first_word" for record in log)
    out = run_regard("--plugin", plugin, "evaluate", tmp_path / "run", pairs, "--metric", "first_word,bleu", "--json")
    assert [score["name"] for score in json.loads(out)["scores"]] == ["first_word", "bleu"]


def test_a_document_format_is_translated(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    save_bundle(run, random_bundle(subwords, "recurrent", "bahdanau"))
    film = tmp_path / "film.srt"
    film.write_text("1\n00:00:01,000 --> 00:00:02,000\nthe cat\n\n2\n00:00:03,000 --> 00:00:04,500\na dog\n")
    run_regard("--plugin", HERE / "subtitles.py", "translate", run, film, "-o", tmp_path / "out.srt")
    lines = (tmp_path / "out.srt").read_text().splitlines()
    assert lines[1] == "00:00:01,000 --> 00:00:02,000"
    assert lines[2] != "the cat"


def test_a_search_is_selected_by_name(subwords: SubwordTokenizer, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    save_bundle(run, random_bundle(subwords, "recurrent", "bahdanau"))
    plugin = HERE / "second_start.py"
    found = run_regard("--plugin", plugin, "translate", run, "the cat", "--search", "second-start", "--json")
    greedy = run_regard("translate", run, "the cat", "--search", "greedy", "--json")
    assert json.loads(found)["score"] >= json.loads(greedy)["score"]
    assert "there is no search 'second-start'" in run_regard(
        "translate", run, "the cat", "--search", "second-start", code=2
    )


@pytest.mark.slow
def test_an_encoder_trains_evaluates_predicts_shows_and_serves(pairs: Path, tmp_path: Path) -> None:
    plugin, run = HERE / "depthwise_encoder.py", tmp_path / "run"
    encoder = ["--preset", "bahdanau", "--set", "model.encoder.kind=depthwise", "--set", "model.encoder.kernel=3"]
    run_regard("--plugin", plugin, "train", pairs, "-o", run, *encoder, *SETTINGS, "--steps", "30", "--quiet")
    assert 'kind = "depthwise"' in (run / "model.toml").read_text()
    assert json.loads(run_regard("--plugin", plugin, "evaluate", run, pairs, "--json"))["scores"]
    outputs = {run_regard("--plugin", plugin, verb, run, "red cat 3") for verb in ("predict", "translate")}
    assert len(outputs) == 1
    alone, *_ = run_regard("--plugin", plugin, "translate", run, "red cat 3", "--json").splitlines()
    together, *_ = run_regard(
        "--plugin", plugin, "translate", run, "red cat 3", "a much longer text", "--json"
    ).splitlines()
    assert json.loads(alone)["text"] == json.loads(together)["text"], "its output does not depend on its batch"
    run_regard("--plugin", plugin, "see", run, "red cat 3", "-o", tmp_path / "x.html")
    assert "needs the plugin encoder.depthwise" in run_regard("predict", run, "red cat 3", code=2)
    server = Server([run], "--plugin", str(plugin))
    try:
        assert "translations" in server.request("/v1/translate", {"text": "red cat 3"}).json()
    finally:
        server.process.terminate()


@pytest.mark.slow
def test_a_task_trains_evaluates_predicts_shows_and_serves(pairs: Path, tmp_path: Path) -> None:
    plugin, run = HERE / "transliteration.py", tmp_path / "run"
    task = ["--task", "transliteration", *SETTINGS, "--steps", "30", "--quiet"]
    run_regard("--plugin", plugin, "train", pairs, "-o", run, *task)
    assert 'task = "transliteration"' in (run / "model.toml").read_text()
    log = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert {record["metric"] for record in log if "metric" in record} == {"cer"}, "its first metric"
    scores = json.loads(run_regard("--plugin", plugin, "evaluate", run, pairs, "--json"))["scores"]
    assert [score["name"] for score in scores] == ["cer", "exact"]
    outputs = [
        run_regard("--plugin", plugin, verb, run, "red cat 3") for verb in ("predict", "transliterate", "translate")
    ]
    assert len(set(outputs)) == 1
    assert "transliterate" in run_regard("--plugin", plugin, "--help")
    run_regard("--plugin", plugin, "see", run, "red cat 3", "-o", tmp_path / "x.html")
    assert "needs the plugin task.transliteration" in run_regard("predict", run, "red cat 3", code=2)
    server = Server([run], "--plugin", str(plugin))
    try:
        (model,) = server.request("/v1/models").json()["models"]
        assert (model["task"], model["output"]) == ("transliteration", "Transliteration")
        assert "translations" in server.request("/v1/translate", {"text": "red cat 3"}).json()
    finally:
        server.process.terminate()
