"""Translating files: a killed job resumes with the same output; options and errors of the command."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.documents import file_translation
from regard.documents.document import DocumentLayout, read_document
from regard.documents.file_translation import translate_document, translation_fingerprint
from regard.inference.options import Options
from regard.loading import predictor_from_bundle
from regard.runs.bundle import Bundle, save_bundle
from tests.bundles import LINES, random_bundle


@pytest.fixture
def bundle(subwords: SubwordTokenizer) -> Bundle:
    return random_bundle(subwords, "recurrent", "bahdanau")


@pytest.fixture
def run(bundle: Bundle, tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    save_bundle(folder, bundle)
    return folder


def command(run: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "regard", "translate", str(run), *arguments]


def test_an_invalid_text_is_reported_and_the_others_are_translated(bundle: Bundle, tmp_path: Path) -> None:
    content = b"the cat\nb\xe4d\na dog\n"
    document = read_document(content, "file", "text", DocumentLayout())
    translation = translate_document(
        predictor_from_bundle(bundle),
        document,
        Options(beam=1),
        tmp_path / "out",
        fingerprint=translation_fingerprint(content, ""),
    )
    assert translation.failed == [(1, "it is not UTF-8, or has half a character (a lone surrogate)")]
    lines = (tmp_path / "out").read_text().split("\n")
    assert lines[1] == ""
    assert lines[0] == predictor_from_bundle(bundle).translate("the cat", beam=1).text
    assert lines[2] == predictor_from_bundle(bundle).translate("a dog", beam=1).text
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("truncated_bytes", [0, 5, 40])
def test_a_journal_is_resumed_only_with_the_same_fingerprint(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, truncated_bytes: int
) -> None:
    monkeypatch.setattr(file_translation, "TEXTS_PER_RECORD", 3)
    translator, options, output = predictor_from_bundle(bundle), Options(beam=1), tmp_path / "out"
    content = "\n".join(f"{line} {number}" for number, line in enumerate(LINES)).encode()
    document = read_document(content, "file", "text", DocumentLayout())
    translate_document(translator, document, options, output, fingerprint="a")
    expected = output.read_bytes()
    calls, results = 0, translator.results

    def interrupted_results(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return results(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(translator, "results", interrupted_results)
        with pytest.raises(KeyboardInterrupt):
            translate_document(translator, document, options, output, fingerprint="b")
    journal = tmp_path / ".out.part"
    if truncated_bytes:
        journal.write_bytes(journal.read_bytes()[:-truncated_bytes])  # as a kill may leave it
    output.unlink()
    translation = translate_document(translator, document, options, output, fingerprint="b")
    assert 0 < translation.resumed <= 9
    assert (translation.resumed == 9) == (truncated_bytes == 0)
    assert output.read_bytes() == expected
    assert not journal.exists()
    with monkeypatch.context() as patch:
        patch.setattr(translator, "results", interrupted_results)
        calls = 0
        with pytest.raises(KeyboardInterrupt):
            translate_document(translator, document, options, output, fingerprint="b")
    assert translate_document(translator, document, options, output, fingerprint="c").resumed == 0, (
        "another model, or another text"
    )


@pytest.mark.slow
def test_a_killed_job_resumes_with_the_same_output(run: Path, tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(f"{line} {number}\n" for number, line in enumerate(LINES * 400)))
    journal = tmp_path / ".out.txt.part"
    arguments = command(run, str(source), "-o", str(output), "--beam", "2", "--json")
    process = subprocess.Popen(arguments)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (journal.exists() and journal.read_bytes().count(b"\n") > 1024):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not output.exists()
    record = json.loads(subprocess.run(arguments, check=True, capture_output=True, timeout=300).stdout)
    assert 1024 <= record["resumed"] < record["texts"] == 400 * len(LINES)
    resumed = output.read_bytes()
    output.unlink()
    record = json.loads(subprocess.run(arguments, check=True, capture_output=True, timeout=300).stdout)
    assert record["resumed"] == 0
    assert output.read_bytes() == resumed


def test_translate_texts_lines_and_tables(run: Path, tmp_path: Path) -> None:
    def translate(*arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            command(run, *arguments), input=stdin, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    output = translate("the cat")
    assert translate("-", stdin="the cat\na dog\n").startswith(output)
    record = json.loads(translate("the cat", "--json", "--nbest", "2", "--scores", "--alignment"))
    assert record["source"] == "the cat"
    assert record["text"] == output.rstrip("\n")
    assert len(record["alternatives"]) == 1
    assert len(record["token_scores"]) > 0
    terms = tmp_path / "terms.tsv"
    terms.write_text("cat\tKatze\n")
    assert "Katze" in translate("the cat", "--glossary", str(terms))
    table = tmp_path / "a.tsv"
    table.write_text("the cat\t1\n")
    assert translate(str(table)) == f"the cat\t1\t{' '.join(output.split())}\n"


def test_lines_are_printed_with_number_score_text_and_alignment(run: Path) -> None:
    arguments = command(run, "-", "--beam", "2", "--nbest", "2", "--scores", "--alignment")
    done = subprocess.run(
        arguments, input="the cat\n\na dog\n", capture_output=True, text=True, timeout=120, check=True
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "2", "3", "3"]
    assert all(len(row) == 4 for row in rows)
    assert re.fullmatch(r"(\d+-\d+ ?)*", rows[0][3])
    assert float(rows[0][1]) >= float(rows[1][1])


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize("to_file", [True, False])
def test_the_exit_status_is_1_if_a_text_has_no_translation(
    run: Path, tmp_path: Path, options: tuple[str, ...], to_file: bool
) -> None:
    source = tmp_path / "in.txt"
    source.write_bytes(b"the cat\nb\xe4d\na dog\n")
    arguments = command(
        run, str(source), "--beam", "1", *(("-o", str(tmp_path / "out.txt")) if to_file else ()), *options
    )
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "it is not UTF-8" in done.stdout + done.stderr
    assert not to_file or options or "2 texts into" in done.stderr


def test_outputs_that_are_not_files_are_refused_and_links_are_kept(run: Path, tmp_path: Path) -> None:
    source, pipe, link = tmp_path / "in.txt", tmp_path / "pipe", tmp_path / "link.txt"
    source.write_text("the cat\n")

    def translate_into(output: str) -> "subprocess.CompletedProcess[str]":
        arguments = command(run, str(source), "-o", output, "--beam", "1")
        return subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)

    os.mkfifo(pipe)
    assert "pipe is not a file; name one" in translate_into(str(pipe)).stderr
    assert "is not a file; name one" in translate_into("/dev/stdout").stderr
    assert "in.txt is the file that is translated; name another one" in translate_into(str(source)).stderr
    assert source.read_text() == "the cat\n"
    assert pipe.is_fifo()
    assert "there is no folder" in translate_into(str(tmp_path / "none" / "x.txt")).stderr
    (tmp_path / "real.txt").write_text("old")
    link.symlink_to("real.txt")
    done = translate_into(str(link))
    assert done.stderr == f"1 text into {tmp_path / 'real.txt'}\n"
    assert link.is_symlink()
    assert (tmp_path / "real.txt").read_text() == translate_into("-").stdout


def test_lines_of_standard_input_are_answered_before_it_ends(run: Path) -> None:
    process = subprocess.Popen(
        command(run, "-", "--beam", "1"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for line in ("the cat", "a dog"):
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        assert process.stdout.readline().strip(), "answered while the input is open"
    process.stdin.close()
    assert process.wait(60) == 0


def test_input_that_is_not_utf8_does_not_hang(run: Path) -> None:
    arguments = command(run, "-", "--beam", "1")
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(
        arguments, input=b"the cat\n\xe4\n", capture_output=True, timeout=120, check=False, env=environment
    )
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr
    assert b"UTF-8" in done.stderr


def test_lines_of_a_file_are_printed_with_their_alternatives(run: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("the cat\na dog\n")
    done = subprocess.run(
        command(run, str(source), "--json", "--nbest", "2"), capture_output=True, text=True, timeout=120, check=True
    )
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["source"] for record in records] == ["the cat", "a dog"]
    assert all(len(record["alternatives"]) == 1 for record in records)
    arguments = command(run, str(source), "--nbest", "2", "-o", str(tmp_path / "x"))
    failed = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert "without --output" in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt", "-o", "x.txt"], "missing.txt: there is no such file."),
        (["missing.po"], "missing.po: there is no such file."),
        (["./missing"], "./missing: there is no such file."),
        (["."], ".: this is a folder"),
        (["-", "-o", "x.txt"], "--output: it is for files"),
        (["the cat", "-o", "x.txt"], "--output: it is for files"),
        (["-", "--paragraphs"], "--paragraphs, --format and --column are for files"),
        (["the cat", "--nbest", "0"], "nbest: 0 is not possible; it must be at least 1 and at most 1,000"),
        (["the cat", "--length-penalty", "1e9"], "length_penalty: 1000000000.0 is not possible; it must be at least 0"),
        (["the cat", "--beam", "20000"], "beam: 20000 is not possible; it must be at least 1 and at most 1,000"),
        (["the cat", "--beam-groups", "2", "--top-k", "3"], "beam_groups: sampling search does not use it"),
        ([""], "there is nothing to translate"),
        (["the cat", "--max-length-ratio", "inf"], "max_length_ratio: inf is not possible"),
        (["the cat", "--threads", "-1"], "threads: -1 is not possible"),
        (["the cat", "--engine", "fast"], "engine: there is no 'fast'"),
        (["the cat", "--beam", "0"], "beam: "),
        (["the cat", "--glossary", "terms.doc"], "--glossary: terms.doc must be a .tsv"),
        (
            ["the cat", "--engine", "ctranslate2"],
            "CTranslate2 cannot run this model here, since the",
        ),
    ],
)
def test_user_errors_are_one_sentence_without_traceback(run: Path, arguments: list[str], message: str) -> None:
    done = subprocess.run(command(run, *arguments), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"regard: {message}") or message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_structured_files_without_a_format_are_refused(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("<p>the cat</p>\n")
    done = subprocess.run(command(run, str(file)), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "a .html is not translated as such; there are csv, jsonl" in done.stderr
    subprocess.run(command(run, str(file), "--format", "text", "--beam", "1"), timeout=120, check=True)
