"""Documents in passages, passages in rows: no token is lost, no two passages are mixed."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batch import load_batch, plan_batches
from regard.data.corpus import prepare
from regard.data.dataset_kinds.documents import CausalDocuments
from regard.data.formats.text import MAX_CHARACTERS
from regard.data.packing import Passages, assign_rows, pack_sequences, plan_packed_batches
from regard.data.ragged_array import Ragged, RaggedWriter
from regard.data.readers import read_documents
from regard.data.settings import DataSettings
from regard.models.settings import NoSource
from regard.special_tokens import BOS, EOS, PAD

LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=30)


def passages(folder: Path, documents: list[list[int]], max_tokens: int) -> Passages:
    for name, kind in (("tokens", np.int32), ("texts", np.uint8)):
        with RaggedWriter(folder / name, kind) as writer:
            for document in documents:
                writer.append(document)
    index = np.arange(len(documents))
    stored = Ragged(folder / "tokens", np.int32), Ragged(folder / "texts", np.uint8)
    return Passages.from_documents(*stored, index, max_tokens)


@given(
    documents=st.lists(st.lists(st.integers(5, 60), max_size=14), min_size=1, max_size=6), max_tokens=st.integers(2, 8)
)
def test_every_token_is_predicted_once_from_the_token_before(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[int]], max_tokens: int
) -> None:
    found = passages(tmp_path_factory.mktemp("p"), documents, max_tokens)
    sequences = [found.inputs_and_labels(number) for number in range(len(found))]
    pairs = [pair for inputs, labels in sequences for pair in zip(inputs, labels, strict=True)]
    assert pairs == [pair for each in documents for pair in zip([BOS, *each], [*each, EOS], strict=True)]
    assert all(1 <= len(inputs) <= max_tokens for inputs, _ in sequences)
    assert found.target_lengths.tolist() == [len(inputs) for inputs, _ in sequences]


@given(lengths=LENGTHS)
def test_rows_are_filled_in_order(lengths: list[int]) -> None:
    rows = assign_rows(np.array(lengths, np.int32), 9)
    sums = np.bincount(rows, lengths)
    assert sums.max() <= 9
    assert (np.diff(rows) >= 0).all()
    first_lengths = [lengths[int(np.argmax(rows == row))] for row in range(len(sums))]
    assert all(before + first > 9 for before, first in zip(sums[:-1], first_lengths[1:], strict=True)), (
        "no room was left"
    )


@given(lengths=LENGTHS)
def test_a_passage_is_contiguous_in_its_row(lengths: list[int]) -> None:
    sequences = [([100 + n] * length, [200 + n] * length) for n, length in enumerate(lengths)]
    rows = pack_sequences(sequences, 9)
    for number, length in enumerate(lengths):
        row, columns = np.nonzero(rows.inputs.numpy() == 100 + number)
        assert len(set(row.tolist())) == 1
        assert columns.tolist() == list(range(columns[0], columns[0] + length))
        cells = row[0], slice(columns[0], columns[0] + length)
        assert (rows.labels[cells] == 200 + number).all()
        assert rows.position[cells].tolist() == list(range(length))
        assert len(set(rows.document[cells].tolist())) == 1
        assert int((rows.document[row[0]] == rows.document[cells][0]).sum()) == length, "no other has its number"
    assert bool(((rows.document == 0) == (rows.inputs == PAD)).all())


def test_the_batch_order_is_a_function_of_seed_and_epoch() -> None:
    lengths = np.random.default_rng(0).integers(1, 20, 200).astype(np.int32)
    plans = {
        (seed, epoch): plan_packed_batches(lengths, row_length=32, tokens=128, seed=seed, epoch=epoch)
        for seed in (1, 2)
        for epoch in (0, 1)
    }
    again = plan_packed_batches(lengths, row_length=32, tokens=128, seed=1, epoch=0)
    assert all(np.array_equal(a, b) for a, b in zip(plans[1, 0], again, strict=True))
    assert len({str([batch.tolist() for batch in plan]) for plan in plans.values()}) == 4
    for plan in plans.values():
        assert sorted(np.concatenate(plan).tolist()) == list(range(200))
        assert all(assign_rows(lengths[batch], 32).max() < 4 for batch in plan), "as many rows as 128 tokens have"


def test_documents_are_separated_by_blank_lines_or_are_lines(tmp_path: Path) -> None:
    paragraphs, lines = tmp_path / "a.txt", tmp_path / "b.txt"
    paragraphs.write_text("One.\nTwo.\n\n\nThree.\n")
    lines.write_text("One.\nTwo.\n")
    assert [(each.source, each.line) for each in read_documents(paragraphs)] == [("One. Two.", 1), ("Three.", 5)]
    assert [each.source for each in read_documents(lines)] == ["One.", "Two."]
    records = tmp_path / "c.jsonl"
    records.write_text('{"text": "One."}\n{"title": "x", "text": "Two."}\n')
    assert [each.source for each in read_documents(records)] == ["One.", "Two."]


def test_long_documents_are_split_without_loss(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    words = [f"word{number}" for number in range(5000)]
    path.write_text(" ".join(words) + "\n" + "x" * (MAX_CHARACTERS + 5) + "\n")
    found = [each.source for each in read_documents(path)]
    assert all(len(each) <= MAX_CHARACTERS for each in found)
    assert " ".join(found[:-2]).split() == words
    assert "".join(found[-2:]) == "x" * (MAX_CHARACTERS + 5)


def test_a_corpus_of_plain_text_is_loaded_in_passages(tmp_path: Path) -> None:
    train, valid = tmp_path / "train.txt", tmp_path / "valid.txt"
    train.write_text("".join(f"the {n}th line has some words and ends here\n" for n in range(60)))
    valid.write_text("another line\n\nwith a blank one\n")
    settings = DataSettings.parse({"text": [train], "valid_text": [valid], "max_tokens": 16, "subwords": {"size": 320}})
    corpus = prepare(settings, tmp_path / "data", kind=CausalDocuments(), source=NoSource())
    assert isinstance(corpus.train, Passages)
    assert corpus.valid.text(0) == "another line"
    for numbers in plan_batches(corpus, corpus.train, tokens=64, seed=1, epoch=0):
        batch = load_batch(corpus, corpus.train, numbers)
        assert batch.source.shape == (len(batch.decoder_input), 0)
        assert batch.decoder_input.shape[1] <= 16
        assert batch.tokens == int(corpus.train.target_lengths[numbers].sum())
