"""Text files, a text a line; or a paragraph a line, each split into sentences and put back."""

import re
from collections.abc import Iterator, Sequence

from regard.data.sentence_splitting import sentences
from regard.documents import Layout, decoded

LINE_ENDS = re.compile(r"\r\n|\n|\r")


class PlainText:
    """Lines of text. Line ends, empty lines and blanks around a line stay."""

    notes: Sequence[str] = ()

    def __init__(self, content: bytes, name: str, layout: Layout) -> None:
        self._text, self._mark = decoded(content, name, lenient=True)
        self._paragraphs = layout.paragraphs
        self.texts: Sequence[str] = [part for part, stays in self._parts() if not stays]

    def _parts(self) -> Iterator[tuple[str, bool]]:
        """The whole file part by part, and whether each stays; read anew each time: parts weigh more than the file."""
        at = 0
        for found in LINE_ENDS.finditer(self._text):
            yield from self._line(self._text[at : found.start()])
            yield found[0], True
            at = found.end()
        yield from self._line(self._text[at:])

    def _line(self, line: str) -> Iterator[tuple[str, bool]]:
        body = line.strip()
        start = line.index(body[0]) if body else len(line)
        yield line[:start], True
        if not body:
            return
        for sentence, blanks in sentences(body) if self._paragraphs else [(body, "")]:
            yield sentence, False
            yield blanks, True
        yield line[start + len(body) :], True

    def written(self, translations: Sequence[str | None]) -> bytes:
        """What has no translation is empty."""
        said = iter(translations)
        return self._mark + "".join(part if stays else next(said) or "" for part, stays in self._parts()).encode(
            "utf-8", "surrogateescape"
        )
