"""Files of numbers, each one series [steps, columns]: NumPy's .npy, or CSV and TSV with or without a header."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.data.media.base import open_media
from regard.errors import RegardError

NPY = b"\x93NUMPY"
SUFFIXES = (".npy", ".csv", ".tsv")


def read_numbers(media: Path | str | bytes) -> NDArray[np.float32]:
    """[steps, columns] of a file or its content. Raises RegardError."""
    file = open_media(media)
    is_npy = file.getbuffer()[: len(NPY)] == NPY
    values = _read_npy(file) if is_npy else _read_table(file)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not values.size:
        raise RegardError(f"its shape is {values.shape}; a series has the shape (steps, columns).")
    return np.ascontiguousarray(values, np.float32)


def _read_npy(file: io.BytesIO) -> NDArray[Any]:
    try:
        values: NDArray[Any] = np.load(file, allow_pickle=False)
    except (ValueError, EOFError, OSError):
        raise RegardError("this is not a .npy file of numbers.") from None
    if not np.issubdtype(values.dtype, np.number) or np.issubdtype(values.dtype, np.complexfloating):
        raise RegardError(f"its numbers are {values.dtype}; real ones are read.")
    return values


def _read_table(file: io.BytesIO) -> NDArray[Any]:
    """Rows of numbers; a first row that is not numbers is a header, and columns of text are refused."""
    try:
        text = file.getvalue().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RegardError("this is neither a .npy file nor a table of numbers in UTF-8.") from None
    first = text[: text.find("\n") if "\n" in text else len(text)]
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=max("\t,; ", key=first.count)) if any(row)]
    except csv.Error as error:
        raise RegardError(f"this is not a table ({error}).") from None
    if rows and not all(map(_is_number, rows[0])):
        rows = rows[1:]
    if not rows or len({len(row) for row in rows}) > 1:
        raise RegardError("this is not a table of numbers: its rows have different lengths, or there are none.")
    try:
        return np.array(rows, np.float64)
    except ValueError:
        raise RegardError("this is not a table of numbers: a cell is text.") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
