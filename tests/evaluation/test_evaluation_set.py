"""Test sets: the files of one, grouping of references, examples that are rejected."""

from pathlib import Path

import pytest

from regard.data.example import Layout
from regard.errors import RegardError
from regard.evaluation.evaluation_set import EvaluationFiles, load_evaluation_set


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_a_file_of_pairs_is_read_and_invalid_lines_are_rejected(tmp_path: Path) -> None:
    pairs = write(tmp_path / "x.tsv", "a\tb  c \n\tb\nd\t\ne\tf\n")
    data = load_evaluation_set(EvaluationFiles(pairs=[pairs]), None)
    assert (data.sources, data.references) == (["a", "e"], [["b c", "f"]])
    assert data.rejected == {"empty source": 1, "empty target": 1}
    assert data.text_sources == data.sources
    assert len(data) == 2


def test_targets_of_one_record_are_references_of_one_source(tmp_path: Path) -> None:
    pairs = write(tmp_path / "x.jsonl", '{"source": "a", "target": ["b", "c"]}\n{"source": "d", "target": "e"}\n')
    files = EvaluationFiles(pairs=[pairs], layout=Layout(source_column="source", target_column="target"))
    data = load_evaluation_set(files, None)
    assert data.sources == ["a", "d"]
    assert data.references == [["b", "e"], ["c", "e"]]


def test_text_files_side_by_side_have_several_references(tmp_path: Path) -> None:
    source, *references = (
        write(tmp_path / name, text) for name, text in (("s", "a\nb\n"), ("r", "c\nd\n"), ("q", "e\nf\n"))
    )
    data = load_evaluation_set(EvaluationFiles(source=source, references=references), None)
    assert (data.sources, data.references) == (["a", "b"], [["c", "d"], ["e", "f"]])


def test_outputs_are_scored_with_or_without_their_sources(tmp_path: Path) -> None:
    source, outputs, reference = (write(tmp_path / name, f"{name}1\n{name}2\n") for name in ("s", "o", "r"))
    without_source = load_evaluation_set(EvaluationFiles(references=[reference], outputs=outputs), None)
    assert (without_source.sources, without_source.outputs, without_source.references) == (
        None,
        ["o1", "o2"],
        [["r1", "r2"]],
    )
    with_source = load_evaluation_set(EvaluationFiles(source=source, references=[reference], outputs=outputs), None)
    assert with_source.sources == ["s1", "s2"]


def test_incomplete_or_contradicting_files_are_refused(tmp_path: Path) -> None:
    pairs = write(tmp_path / "x.tsv", "\tb\n")
    text = write(tmp_path / "t", "a\n")
    for files, message in (
        (EvaluationFiles(), "name a test set"),
        (EvaluationFiles(source=text), "name a test set"),
        (EvaluationFiles(pairs=[pairs], source=text), "not both"),
        (EvaluationFiles(pairs=[pairs]), "the test set is empty; rejected: 1 empty source"),
        (EvaluationFiles(outputs=text), "give its references with --reference"),
        (EvaluationFiles(pairs=[pairs], media=tmp_path), "this one reads text"),
    ):
        with pytest.raises(RegardError, match=message):
            load_evaluation_set(files, None)
