"""CoNLL: one word a line with its tag in the last column, a blank line after each sentence."""

from collections.abc import Iterator
from pathlib import Path

from regard.data.example import Example, Layout
from regard.data.input_files import read_lines
from regard.data.readers import READERS, Reader


@READERS.register("conll")
class ConllReader(Reader):
    """Tagged words, as the CoNLL shared tasks have them."""

    suffixes = (".conll", ".bio", ".iob", ".iob2")

    def read(self, path: Path, layout: Layout) -> Iterator[Example]:
        words: list[str] = []
        tags: list[str] = []
        first, problem = 1, ""
        for number, (line, line_problem) in enumerate(read_lines(path), 1):
            columns = line.split()
            if columns and columns[0] != "-DOCSTART-":
                first = first if words else number
                words.append(columns[0])
                tags.append(columns[-1])
                problem = problem or line_problem or ("" if len(columns) > 1 else "a word without a tag")
            elif words:
                yield Example(" ".join(words), " ".join(tags), str(path), first, problem)
                words, tags, problem = [], [], ""
        if words:
            yield Example(" ".join(words), " ".join(tags), str(path), first, problem)
