"""Ragged arrays: sequences of any length are read as they were written."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import ragged_array as ragged
from regard.data.ragged_array import Ragged, RaggedWriter

KINDS = {np.uint8: 255, np.uint16: 65535, np.int32: 2**31 - 1}


@given(kind=st.sampled_from(list(KINDS)), at_once=st.sampled_from([1, 7, 1 << 20]), data=st.data())
def test_sequences_are_read_as_they_were_written(kind, at_once: int, data: st.DataObject, tmp_path_factory) -> None:
    sequences = data.draw(st.lists(st.lists(st.integers(0, KINDS[kind]), max_size=6), max_size=8))
    path = tmp_path_factory.getbasetemp() / "ragged.data"
    with pytest.MonkeyPatch.context() as patch, RaggedWriter(path, kind) as writer:
        patch.setattr(ragged, "BUFFER_ELEMENTS", at_once)
        for sequence in sequences:
            writer.append(sequence)
    read = Ragged(path, kind)
    assert len(read) == len(sequences)
    assert [read[at].tolist() for at in range(len(read))] == sequences
    assert read.lengths.tolist() == [len(sequence) for sequence in sequences]
    assert all(read[at].dtype == kind for at in range(len(read)))


@given(texts=st.lists(st.binary(max_size=9), max_size=8))
def test_bytes_are_read_as_they_were_written(texts: list[bytes], tmp_path_factory) -> None:
    path = tmp_path_factory.getbasetemp() / "ragged.text"
    with RaggedWriter(path, np.uint8) as writer:
        for text in texts:
            writer.append(text)
    read = Ragged(path, np.uint8)
    assert [read[at].tobytes() for at in range(len(read))] == texts


def test_an_index_beyond_the_end_is_an_error(tmp_path: Path) -> None:
    with RaggedWriter(tmp_path / "r", np.int32) as writer:
        writer.append([1, 2])
    with pytest.raises(IndexError):
        Ragged(tmp_path / "r", np.int32)[1]


def test_values_are_read_from_disk_when_needed(tmp_path: Path) -> None:
    with RaggedWriter(tmp_path / "r", np.uint16) as writer:
        for number in range(1000):
            writer.append([number] * 10)
    read = Ragged(tmp_path / "r", np.uint16)
    assert isinstance(read.values, np.memmap)
    assert isinstance(read.ends, np.memmap)
    assert not read.values.flags.writeable
