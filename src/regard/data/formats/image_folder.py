"""Folders of images or recordings, one folder for each class: cat/1.png, dog/2.png."""

from collections.abc import Iterator
from pathlib import Path

from regard.data.example import Example, Layout
from regard.data.media.audio import AudioProcessor
from regard.data.media.image import ImageProcessor
from regard.data.readers import READERS, Reader
from regard.errors import RegardError


@READERS.register("image-folder")
class ImageFolderReader(Reader):
    """The name of a file's folder is its class."""

    @classmethod
    def matches(cls, path: Path) -> bool:
        return path.is_dir()

    def read(self, path: Path, layout: Layout) -> Iterator[Example]:
        suffixes = ImageProcessor.suffixes + AudioProcessor.suffixes
        number = 0
        for folder in sorted(each for each in path.iterdir() if each.is_dir() and not each.name.startswith(".")):
            for file in sorted(folder.rglob("*")):
                if file.suffix.lower() in suffixes and file.is_file():
                    number += 1
                    yield Example(str(file.relative_to(path)), folder.name, str(path / "*"), number)
        if not number:
            raise RegardError(
                f"{path}: this is a folder without folders of pictures or recordings; name a file, or a folder that "
                f"has a folder for each class."
            )
