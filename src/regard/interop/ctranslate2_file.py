"""CTranslate2's model.bin: a list of named arrays. Nothing in it is executed."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError

DTYPES = ("<f4", "i1", "<i2", "<i4", "<f2", "bfloat16")  # by their number
VERSIONS = (5, 6)  # of the format
MAX_AXES = 4
Array = NDArray[Any]


@dataclass(frozen=True)
class ModelFile:
    """The arrays of a model.bin, with weights as float32, and aliases of array names."""

    arrays: Mapping[str, Array]
    aliases: Mapping[str, str]

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def original(self, name: str) -> str:
        """The name of the array that an alias refers to."""
        return self.aliases.get(name, name)

    def number(self, name: str, default: int = 0) -> int:
        """A setting, stored as a scalar array."""
        return int(self.arrays[name]) if name in self.arrays else default


def read_model_file(path: Path) -> ModelFile:
    """Raises RegardError for a file that is damaged or not a translation model."""
    with path.open("rb") as file:
        reader = _Reader(path, file)
        version = reader.number("I")
        if version not in VERSIONS:
            raise RegardError(
                f"{path}: format {version} of CTranslate2 is not known, only {' and '.join(map(str, VERSIONS))}; "
                f"convert the model anew."
            )
        spec = reader.name()
        if spec != "TransformerSpec":
            raise RegardError(f"{path}: this is a {spec[:40]}; only models that translate (TransformerSpec) are read.")
        reader.number("I")  # the revision of the specification
        arrays = dict(reader.array() for _ in range(reader.number("I")))
        aliases = {reader.name(): reader.name() for _ in range(reader.number("I"))}
    return ModelFile(_dequantize(arrays), aliases)


class _Reader:
    """Reads numbers, names and arrays in sequence."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._file, self._size = file, path.stat().st_size
        self._damaged = RegardError(f"{path}: it is no model of CTranslate2's, or damaged.")

    def _bytes(self, count: int) -> bytes:
        if count > self._size - self._file.tell():
            raise self._damaged
        return self._file.read(count)

    def number(self, kind: str) -> int:
        kind = f"<{kind}"
        (value,) = struct.unpack(kind, self._bytes(struct.calcsize(kind)))
        return int(value)

    def name(self) -> str:
        try:
            return self._bytes(self.number("H")).rstrip(b"\0").decode()
        except UnicodeDecodeError:
            raise self._damaged from None

    def array(self) -> tuple[str, Array]:
        """An array with its name."""
        name, axes = self.name(), self.number("B")
        shape = struct.unpack(f"<{axes}I", self._bytes(4 * axes))
        dtype, size = self.number("B"), self.number("I")
        if axes > MAX_AXES or dtype >= len(DTYPES):
            raise self._damaged
        content = self._bytes(size)
        try:
            if DTYPES[dtype] == "bfloat16":
                bits = np.frombuffer(content, "<u2").astype(np.uint32) << 16
                return name, bits.view(np.float32).reshape(shape)
            return name, np.frombuffer(content, DTYPES[dtype]).reshape(shape)
        except ValueError:
            raise self._damaged from None


def _dequantize(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """All weights as float32, those with a scale divided by it."""
    found: dict[str, Array] = {}
    for name, array in arrays.items():
        if name.endswith("_scale"):
            continue
        scale = arrays.get(f"{name}_scale")
        if scale is not None:
            found[name] = array.astype(np.float32) / (scale[:, None] if scale.ndim else scale)
        else:
            found[name] = array.astype(np.float32) if array.ndim else array
    return found
