"""Models that read: hidden words, vectors, spans and tags, by the real command, and spans by a real server."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.end_to_end.runs import regard, small
from tests.serving.conftest import Server

TINY = [
    "model.encoder.width=32",
    "model.encoder.layers=1",
    "model.encoder.heads=2",
    "model.encoder.feedforward=64",
    "data.subwords.size=330",
    "training.validate_every=6",
]
PLAIN = [f"the {a} and the {b} sat on the mat" for a in "abcdefgh" for b in "klmnopqr"]


@pytest.mark.slow
def test_hidden_words_and_vectors(tmp_path: Path) -> None:
    text, run = tmp_path / "text.txt", tmp_path / "run"
    text.write_text("\n".join(PLAIN))
    regard("train", text, "--task", "masked_lm", "-o", run, "--steps", 12, *small(TINY))
    lines = regard("fill", run, "-", "--json", "--nbest", 2, check=False, give="the ___ and\n\nthe a ___ the\n")
    assert lines.returncode == 1
    records = [json.loads(line) for line in lines.stdout.splitlines()]
    assert [len(record.get("gaps", ())) for record in records] == [1, 0, 1]
    assert "no gap" in records[1]["wrong"] or "empty" in records[1]["wrong"]
    regard("embed", run, text, "-o", tmp_path / "vectors.npy")
    assert np.load(tmp_path / "vectors.npy").shape == (len(PLAIN), 32)
    assert len(regard("embed", run, "-", "--json", give="the a\nthe b\n").stdout.splitlines()) == 2
    for given, said in ((["missing.txt"], "no such file"), (["a", ""], "text 2 of 2 is empty")):
        told = regard("embed", run, *given, check=False)
        assert (told.returncode, said in told.stderr) == (2, True)
    filled = regard("fill", run, "the ___ and").stdout
    assert len(filled.splitlines()) == 5
    assert regard("predict", run, "the ___ and").stdout == filled
    wrong = regard("generate", run, "the", check=False)
    assert (wrong.returncode, "regard fill" in wrong.stderr) == (2, True)
    seen = regard("see", run, "the ___ and the k sat").stdout
    assert "___" in seen
    assert "--attribution" not in seen
    precise = regard("export", run, "--to", "onnx", "--precision", "int8", "-o", tmp_path / "x", check=False)
    assert (precise.returncode, "int8 is for ctranslate2" in precise.stderr) == (2, True)


@pytest.mark.slow
def test_spans_from_a_table_to_a_server(tmp_path: Path) -> None:
    rows = [
        {"context": f"{who} is in the {where}.", "question": f"Where is {who}?", "answer": where}
        for who in ("Mary", "John", "Anna", "Max")
        for where in ("garden", "kitchen", "hall", "office", "attic", "cellar")
    ]
    table, run = tmp_path / "train.jsonl", tmp_path / "run"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    regard("train", table, "--task", "span_qa", "-o", run, "--steps", 12, *small(TINY))
    report = json.loads(regard("evaluate", run, table, "--json").stdout)
    assert [score["name"] for score in report["scores"]] == ["span_f1", "span_exact", "exact"]
    asked = "Mary is in the garden.\tWhere is Mary?"
    told = regard("translate", run, "-", give=f"{asked}\n").stdout.strip()
    assert told
    assert told in asked
    # Tables with other columns, with and without a first line that names them.
    for name, content in (
        ("a.tsv", f"{asked}\n"),
        ("b.tsv", f"passage\tquestion\n{asked}\n"),
        ("c.csv", "question,story\nWhere is Mary?,Mary is in the garden.\n"),
        ("d.jsonl", json.dumps({"passage": "Mary is in the garden.", "question": "Where is Mary?"}) + "\n"),
    ):
        (tmp_path / name).write_text(content)
        regard("translate", run, tmp_path / name, "-o", tmp_path / f"out-{name}")
        assert told in (tmp_path / f"out-{name}").read_text().splitlines()[-1].replace("Mary is in the garden.", "")
    (tmp_path / "test.tsv").write_text(f"story\tquestion\tanswer\n{asked}\tgarden\n")
    assert json.loads(regard("evaluate", run, tmp_path / "test.tsv", "--json").stdout)["sentences"] == 1
    for option in (("--nbest", 3), ("--prefix", "x"), ("--temperature", 0.5)):
        refused = regard("translate", run, asked, *option, check=False)
        assert (refused.returncode, "leave it out" in refused.stderr) == (2, True)
    server = Server([run])
    try:
        assert server.request("/v1/translate", {"text": [asked], "nbest": 2}).status == 400
        answer = server.request("/v1/translate", {"text": [asked]})
        assert answer.status == 200
        assert answer.json()["translations"][0]["text"] == told
    finally:
        server.stop()


@pytest.mark.slow
def test_spans_begin_with_what_was_learnt_of_plain_text(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(PLAIN))
    regard("train", text, "--task", "masked_lm", "-o", tmp_path / "bert", "--steps", 6, *small(TINY))
    asked = [
        {"question": "Where is Mary?", "answers": [{"text": "garden", "answer_start": 15}]},
        {"question": "Where is John?", "answers": [], "is_impossible": True},
        {"question": "Who knows?"},
    ]
    passages = [{"context": f"Mary is in the garden {at}.", "qas": asked} for at in range(20)]
    (tmp_path / "squad.json").write_text(json.dumps({"data": [{"paragraphs": passages}]}))
    how = ("--init", tmp_path / "bert", "-o", tmp_path / "run", "--steps", 6, "--set", "training.validate_every=3")
    told = regard("train", tmp_path / "squad.json", "--task", "span_qa", *how)
    assert "20 no answers are given" in told.stdout + told.stderr
    report = json.loads(regard("evaluate", tmp_path / "run", tmp_path / "squad.json", "--json").stdout)
    assert report["sentences"] == 40
    table = tmp_path / "t.tsv"
    table.write_text("context\tquestion\nMary is in the garden.\tWhere is Mary?\n")
    done = regard("translate", tmp_path / "run", table, "-o", tmp_path / "out.tsv")
    assert "no question" not in done.stderr


@pytest.mark.slow
def test_tags_from_a_file_to_a_server(tmp_path: Path) -> None:
    sentences = [f"{who} O\n{where} B-LOC\n" for who in ("Mary", "John", "Anna") for where in ("Rome", "Oslo", "Bern")]
    table, run = tmp_path / "train.conll", tmp_path / "run"
    table.write_text("\n".join(sentences * 4))
    regard("train", table, "--task", "tagging", "-o", run, "--steps", 12, "--set", "model.encoder.width=16")
    server = Server([run])
    try:
        answer = server.request("/v1/translate", {"text": ["Mary Rome"]})
        assert answer.status == 200
        assert len(answer.json()["translations"][0]["text"].split()) == 2
    finally:
        server.stop()
