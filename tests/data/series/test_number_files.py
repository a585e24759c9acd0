"""Files of numbers, each one series."""

import io
from pathlib import Path

import numpy as np
import pytest

from regard.data.series.number_files import read_numbers
from regard.errors import RegardError

VALUES = np.array([[1.0, -2.5], [3.0, 4e-3], [0.0, 7.0]])


def npy(values: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(values))
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        npy(VALUES),
        npy(VALUES.astype(np.float16)),
        b"1,-2.5\n3,4e-3\n0,7\n",
        b"x,y\n1,-2.5\n3,4e-3\n0,7\n",
        b"\xef\xbb\xbfx\ty\r\n1\t-2.5\r\n3\t4e-3\r\n0\t7\r\n",
        b"1 -2.5\n3 4e-3\n0 7",
    ],
)
def test_the_same_numbers_are_read_from_every_format(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content)
    for found in (read_numbers(content), read_numbers(tmp_path / "x")):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, VALUES, atol=1e-3)


def test_one_column_needs_no_second_axis() -> None:
    assert read_numbers(npy([1.0, 2.0, 3.0])).shape == read_numbers(b"a\n1\n2\n3\n").shape == (3, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy(np.zeros((2, 2, 2))), "its shape is"),
        (npy(np.zeros((0, 2))), "its shape is"),
        (npy(np.array(["a", "b"])), "real ones are read"),
        (npy(np.array([1j])), "real ones are read"),
        (b"\x93NUMPY\x01\x00broken", r"not a \.npy file"),
        (b"\xff\xfe\x00", "neither a .npy file"),
        (b"1,2\n3\n", "different lengths"),
        (b"x,y\n", "there are none"),
        (b"1,2\n3,x\n", "a cell is text"),
    ],
)
def test_what_is_no_series_is_one_sentence(content: bytes, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        read_numbers(content)


def test_pickled_arrays_are_never_opened() -> None:
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(RegardError, match=r"not a \.npy file of numbers"):
        read_numbers(file.getvalue())
