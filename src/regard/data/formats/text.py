"""Plain text: two aligned files, line by line, or documents."""

from collections.abc import Iterator
from pathlib import Path

from regard.data.example import Example, Layout
from regard.data.input_files import read_lines
from regard.data.readers import READERS, Reader
from regard.errors import RegardError

MAX_CHARACTERS = 10_000  # of a document that become one example


@READERS.register("text")
class TextReader(Reader):
    """Files with one sentence a line, or with documents."""

    suffixes = (".txt", ".text")
    two_files = True

    def read(self, path: Path, layout: Layout) -> Iterator[Example]:
        raise RegardError(f"{path}: a text file has one side; give two files with --source and --target.")

    def read_two_files(self, source: Path, target: Path) -> Iterator[Example]:
        """Two text files, line by line. Raises RegardError if one is longer than the other."""
        readers = read_lines(source), read_lines(target)
        number = 0
        while True:
            pair = [next(reader, None) for reader in readers]
            number += 1
            first, second = pair
            if first is None and second is None:
                return
            if first is None or second is None:
                counts = [
                    number - 1 if line is None else number + sum(1 for _ in reader)
                    for line, reader in zip(pair, readers, strict=True)
                ]
                short, long = (source, target) if first is None else (target, source)
                raise RegardError(
                    f"{source} has {counts[0]:,} lines and {target} {counts[1]:,}: line {number:,} of {long} has no "
                    f"partner in {short}; the two files must have the same sentences in the same order."
                )
            yield Example(first[0], second[0], str(source), number, first[1] or second[1])

    def read_documents(self, path: Path) -> Iterator[Example]:
        """Documents with blank lines between or, if the file has none, one document a line."""
        separated = any(not line.strip() for line, _ in read_lines(path))
        lines: list[str] = []
        first, problem, size = 1, "", 0
        for number, (line, line_problem) in enumerate(read_lines(path), 1):
            if lines and (not separated or not line.strip() or size + len(line) > MAX_CHARACTERS):
                for chunk in split_document(" ".join(lines)):
                    yield Example(chunk, chunk, str(path), first, problem)
                lines, problem, size = [], "", 0
            if line.strip():
                first = first if lines else number
                lines.append(line.strip())
                problem, size = problem or line_problem, size + len(line) + 1
        for chunk in split_document(" ".join(lines)):
            yield Example(chunk, chunk, str(path), first, problem)


def split_document(text: str) -> Iterator[str]:
    """A document in chunks of MAX_CHARACTERS at most, split between words where there are any."""
    start = 0
    while len(text) - start > MAX_CHARACTERS:
        end = text.rfind(" ", start + 1, start + MAX_CHARACTERS) + 1 or start + MAX_CHARACTERS
        yield text[start:end].strip()
        start = end
    if rest := text[start:].strip():
        yield rest
