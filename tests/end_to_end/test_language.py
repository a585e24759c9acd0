"""Language models: training, evaluation and generation by the command."""

import json
from pathlib import Path

import pytest

from tests.end_to_end.commands import run_regard, set_options

TINY = [
    "model.decoder.width=32",
    "model.decoder.layers=1",
    "model.decoder.feedforward=64",
    "data.subwords.size=330",
    "data.max_tokens=24",
    "training.batch_tokens=128",
    "training.gradient_accumulation=2",
    "training.validate_every=6",
    "training.save_every=1",
    "training.averaged_checkpoints=2",
]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "rhymes.txt"
    path.write_text("".join(f"the {a} and the {b} sat on the mat\n" for a in "abcdefgh" for b in "klmnopqr"))
    return path


@pytest.mark.slow
def test_a_language_model_is_trained_evaluated_and_generates(text: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    trained = run_regard("train", text, "--task", "causal_lm", "-o", run, "--steps", 30, *set_options(TINY))
    assert f"regard evaluate {run} test.txt" in trained.stdout
    report = json.loads(run_regard("evaluate", run, text, "--json").stdout)
    assert report["documents"] == 64
    assert report["words"] == 64 * 9
    assert 1 < report["perplexity"] < 200
    generated = run_regard("generate", run, "the a and", "--max-tokens", 5).stdout
    assert generated.startswith("the a and")
    assert generated == run_regard("generate", run, "the a and", "--max-tokens", 5).stdout, "the same seed"
    several = run_regard("generate", run, "the a", "--nbest", 3, "--beam", 3, "--scores").stdout.splitlines()
    assert [float(line.split("\t")[0]) for line in several] == sorted(
        (float(line.split("\t")[0]) for line in several), reverse=True
    )
    record = json.loads(run_regard("generate", run, "the a", "--json").stdout)
    assert record["text"].startswith("the a")
    for verb in ("predict", "translate"):
        assert run_regard(verb, run, "the a and", "--max-tokens", 5).stdout == generated
    refused = run_regard("classify", run, "the a", check=False)
    assert (refused.returncode, "use regard generate" in refused.stderr) == (2, True)
    refused = run_regard("generate", run, "the a", "--beam", 3, "--top-k", 4, check=False)
    assert (refused.returncode, "leave it out, or leave out top_k" in refused.stderr) == (2, True)
    refused = run_regard("evaluate", run, check=False)
    assert (refused.returncode, "a file of plain text" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_an_interrupted_run_ends_with_the_same_bits(text: Path, tmp_path: Path) -> None:
    options = ("--task", "causal_lm", "--steps", 12, *set_options(TINY))
    for name in ("whole", "parts"):
        run_regard("train", text, "-o", tmp_path / name, *options)
    newest = sorted(each for each in (tmp_path / "parts" / "checkpoints").iterdir() if each.is_dir())[-1]
    for file in newest.iterdir():
        file.unlink()
    newest.rmdir()
    resumed = run_regard("train", "--resume", tmp_path / "parts")
    assert "Resuming at step 1" in resumed.stderr + resumed.stdout
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]
