"""IDX: arrays of images and of labels, as MNIST has them."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from regard.data.example import Example, Layout
from regard.data.input_files import open_file
from regard.data.readers import READERS, Reader
from regard.errors import RegardError

UNSIGNED_BYTE = 0x08  # the type code in an IDX header
MAX_PIXELS = 1 << 24


@READERS.register("idx")
class IdxReader(Reader):
    """A file of images and a file of labels, recognized by `idx3-ubyte` and `idx1-ubyte` in their names."""

    suffixes = (".idx3-ubyte", ".idx1-ubyte")
    two_files = True

    @classmethod
    def matches(cls, path: Path) -> bool:
        return "idx3-ubyte" in path.name or "idx1-ubyte" in path.name

    def read(self, path: Path, layout: Layout) -> Iterator[Example]:
        raise RegardError(f"{path}: give the images with --source and their labels with --target.")

    def read_two_files(self, source: Path, target: Path) -> Iterator[Example]:
        images, labels = open_file(source, allow_utf16=True), open_file(target, allow_utf16=True)
        sizes = [_header(path, file, axes) for path, file, axes in ((source, images, 3), (target, labels, 1))]
        (count, height, width), (label_count,) = sizes
        if count != label_count:
            raise RegardError(
                f"{source} has {count:,} pictures and {target} {label_count:,} labels; they must be as many."
            )
        if height * width > MAX_PIXELS:
            raise RegardError(f"{source}: pictures of {width:,} × {height:,} pixels are too large.")
        for number in range(1, count + 1):
            raw, label = images.read(height * width), labels.read(1)
            if len(raw) < height * width or not label:
                raise RegardError(
                    f"{source}: it is cut short after {number - 1:,} of {count:,} pictures; copy it again."
                )
            image = np.frombuffer(raw, np.uint8).reshape(height, width)
            yield Example(f"{source.name}#{number}", str(label[0]), str(source), number, content=image)


def _header(path: Path, file: IO[bytes], axes: int) -> list[int]:
    start = file.read(4 + 4 * axes)
    if len(start) < 4 + 4 * axes or start[:4] != bytes([0, 0, UNSIGNED_BYTE, axes]):
        what = "pictures in bytes" if axes == 3 else "labels"
        raise RegardError(f"{path}: this is not an IDX file of {what}, such as MNIST's.")
    return [int(size) for size in np.frombuffer(start[4:], ">u4")]
