"""Readers of sources that are no text: folders of files by class, and MNIST's arrays."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from regard.data.formats.readers import Example
from regard.data.media import Pictures, Recordings
from regard.errors import RegardError

BYTES = 0x08  # the code of unsigned bytes in an IDX file


def read_folder(path: Path) -> Iterator[Example]:
    """A folder with a folder for each class, in which its pictures or recordings are: cat/1.png, dog/2.png."""
    suffixes = Pictures.suffixes + Recordings.suffixes
    number = 0
    for folder in sorted(each for each in path.iterdir() if each.is_dir() and not each.name.startswith(".")):
        for file in sorted(folder.rglob("*")):
            if file.suffix.lower() in suffixes and file.is_file():
                number += 1
                yield Example(str(file.relative_to(path)), folder.name, str(path / "*"), number)
    if not number:
        raise RegardError(
            f"{path}: this is a folder without folders of pictures or recordings; name a file, or a folder that has a "
            f"folder for each class."
        )


def read_idx(source: Path, pictures: IO[bytes], target: Path, labels: IO[bytes]) -> Iterator[Example]:
    """Pictures and labels as MNIST and its like have them. Raises RegardError."""
    sizes = [_header(path, file, axes) for path, file, axes in ((source, pictures, 3), (target, labels, 1))]
    (count, height, width), (labelled,) = sizes
    if count != labelled:
        raise RegardError(f"{source} has {count:,} pictures and {target} {labelled:,} labels; they must be as many.")
    if height * width > 1 << 24:
        raise RegardError(f"{source}: pictures of {width:,} × {height:,} pixels are too large.")
    for number in range(1, count + 1):
        raw, label = pictures.read(height * width), labels.read(1)
        if len(raw) < height * width or not label:
            raise RegardError(f"{source}: it is cut short after {number - 1:,} of {count:,} pictures; copy it again.")
        picture = np.frombuffer(raw, np.uint8).reshape(height, width)
        yield Example(f"{source.name}#{number}", str(label[0]), str(source), number, content=picture)


def _header(path: Path, file: IO[bytes], axes: int) -> list[int]:
    start = file.read(4 + 4 * axes)
    if len(start) < 4 + 4 * axes or start[:4] != bytes([0, 0, BYTES, axes]):
        what = "pictures in bytes" if axes == 3 else "labels"
        raise RegardError(f"{path}: this is not an IDX file of {what}, such as MNIST's.")
    return [int(size) for size in np.frombuffer(start[4:], ">u4")]
