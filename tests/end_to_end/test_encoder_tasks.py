"""Masked LM, embeddings, span QA and tagging, by the command and by a server."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.end_to_end.commands import run_regard, set_options
from tests.serving.conftest import Server

TINY = [
    "model.encoder.width=32",
    "model.encoder.layers=1",
    "model.encoder.heads=2",
    "model.encoder.feedforward=64",
    "data.subwords.size=330",
    "training.validate_every=6",
]
SENTENCES = [f"the {a} and the {b} sat on the mat" for a in "abcdefgh" for b in "klmnopqr"]


@pytest.mark.slow
def test_a_masked_lm_fills_gaps_and_embeds(tmp_path: Path) -> None:
    text, run = tmp_path / "text.txt", tmp_path / "run"
    text.write_text("\n".join(SENTENCES))
    run_regard("train", text, "--task", "masked_lm", "-o", run, "--steps", 12, *set_options(TINY))
    lines = run_regard("fill", run, "-", "--json", "--nbest", 2, check=False, stdin="the ___ and\n\nthe a ___ the\n")
    assert lines.returncode == 1
    records = [json.loads(line) for line in lines.stdout.splitlines()]
    assert [len(record.get("masks", ())) for record in records] == [1, 0, 1]
    assert "no mask" in records[1]["error"] or "empty" in records[1]["error"]
    run_regard("embed", run, text, "-o", tmp_path / "vectors.npy")
    assert np.load(tmp_path / "vectors.npy").shape == (len(SENTENCES), 32)
    assert len(run_regard("embed", run, "-", "--json", stdin="the a\nthe b\n").stdout.splitlines()) == 2
    for inputs, message in ((["missing.txt"], "no such file"), (["a", ""], "text 2 of 2 is empty")):
        refused = run_regard("embed", run, *inputs, check=False)
        assert (refused.returncode, message in refused.stderr) == (2, True)
    filled = run_regard("fill", run, "the ___ and").stdout
    assert len(filled.splitlines()) == 5
    assert run_regard("predict", run, "the ___ and").stdout == filled
    refused = run_regard("generate", run, "the", check=False)
    assert (refused.returncode, "regard fill" in refused.stderr) == (2, True)
    shown = run_regard("see", run, "the ___ and the k sat").stdout
    assert "___" in shown
    assert "--attribution" not in shown
    refused = run_regard("export", run, "--to", "onnx", "--precision", "int8", "-o", tmp_path / "x", check=False)
    assert (refused.returncode, "int8 is for ctranslate2" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_span_qa_is_trained_evaluated_and_served(tmp_path: Path) -> None:
    rows = [
        {"context": f"{who} is in the {where}.", "question": f"Where is {who}?", "answer": where}
        for who in ("Mary", "John", "Anna", "Max")
        for where in ("garden", "kitchen", "hall", "office", "attic", "cellar")
    ]
    table, run = tmp_path / "train.jsonl", tmp_path / "run"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run_regard("train", table, "--task", "span_qa", "-o", run, "--steps", 12, *set_options(TINY))
    report = json.loads(run_regard("evaluate", run, table, "--json").stdout)
    assert [score["name"] for score in report["scores"]] == ["span_f1", "span_exact", "exact"]
    question = "Mary is in the garden.\tWhere is Mary?"
    predicted = run_regard("translate", run, "-", stdin=f"{question}\n").stdout.strip()
    assert predicted
    assert predicted in question
    # Tables with other columns, with and without a header.
    for name, content in (
        ("a.tsv", f"{question}\n"),
        ("b.tsv", f"passage\tquestion\n{question}\n"),
        ("c.csv", "question,story\nWhere is Mary?,Mary is in the garden.\n"),
        ("d.jsonl", json.dumps({"passage": "Mary is in the garden.", "question": "Where is Mary?"}) + "\n"),
    ):
        (tmp_path / name).write_text(content)
        run_regard("translate", run, tmp_path / name, "-o", tmp_path / f"out-{name}")
        assert predicted in (tmp_path / f"out-{name}").read_text().splitlines()[-1].replace(
            "Mary is in the garden.", ""
        )
    (tmp_path / "test.tsv").write_text(f"story\tquestion\tanswer\n{question}\tgarden\n")
    assert json.loads(run_regard("evaluate", run, tmp_path / "test.tsv", "--json").stdout)["sentences"] == 1
    for option in (("--nbest", 3), ("--prefix", "x"), ("--temperature", 0.5)):
        refused = run_regard("translate", run, question, *option, check=False)
        assert (refused.returncode, "leave it out" in refused.stderr) == (2, True)
    server = Server([run])
    try:
        assert server.request("/v1/translate", {"text": [question], "nbest": 2}).status == 400
        answer = server.request("/v1/translate", {"text": [question]})
        assert answer.status == 200
        assert answer.json()["translations"][0]["text"] == predicted
    finally:
        server.stop()


@pytest.mark.slow
def test_span_qa_starts_from_a_masked_lm(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(SENTENCES))
    run_regard("train", text, "--task", "masked_lm", "-o", tmp_path / "bert", "--steps", 6, *set_options(TINY))
    questions = [
        {"question": "Where is Mary?", "answers": [{"text": "garden", "answer_start": 15}]},
        {"question": "Where is John?", "answers": [], "is_impossible": True},
        {"question": "Who knows?"},
    ]
    passages = [{"context": f"Mary is in the garden {at}.", "qas": questions} for at in range(20)]
    (tmp_path / "squad.json").write_text(json.dumps({"data": [{"paragraphs": passages}]}))
    options = ("--init", tmp_path / "bert", "-o", tmp_path / "run", "--steps", 6, "--set", "training.validate_every=3")
    trained = run_regard("train", tmp_path / "squad.json", "--task", "span_qa", *options)
    assert "20 no answers are given" in trained.stdout + trained.stderr
    report = json.loads(run_regard("evaluate", tmp_path / "run", tmp_path / "squad.json", "--json").stdout)
    assert report["sentences"] == 40
    table = tmp_path / "t.tsv"
    table.write_text("context\tquestion\nMary is in the garden.\tWhere is Mary?\n")
    done = run_regard("translate", tmp_path / "run", table, "-o", tmp_path / "out.tsv")
    assert "no question" not in done.stderr


@pytest.mark.slow
def test_tagging_is_trained_and_served(tmp_path: Path) -> None:
    sentences = [f"{who} O\n{where} B-LOC\n" for who in ("Mary", "John", "Anna") for where in ("Rome", "Oslo", "Bern")]
    table, run = tmp_path / "train.conll", tmp_path / "run"
    table.write_text("\n".join(sentences * 4))
    run_regard("train", table, "--task", "tagging", "-o", run, "--steps", 12, "--set", "model.encoder.width=16")
    server = Server([run])
    try:
        answer = server.request("/v1/translate", {"text": ["Mary Rome"]})
        assert answer.status == 200
        assert len(answer.json()["translations"][0]["text"].split()) == 2
    finally:
        server.stop()
