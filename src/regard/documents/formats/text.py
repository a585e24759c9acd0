"""Text files: one text a line, or one paragraph a line, split into sentences and joined again."""

import re
from collections.abc import Iterator, Sequence

from regard.data.sentence_splitting import split_sentences
from regard.documents.document import DOCUMENTS, Document, DocumentLayout
from regard.documents.text_encoding import decode_utf8

LINE_ENDS = re.compile(r"\r\n|\n|\r")


@DOCUMENTS.register("text")
class TextDocument(Document):
    """Lines of text. Line ends, empty lines and the white space around a line stay."""

    suffixes = (".txt", ".text")

    def __init__(self, content: bytes, name: str, layout: DocumentLayout) -> None:
        self._text, self._bom = decode_utf8(content, name, lenient=True)
        self._paragraphs = layout.paragraphs
        self.texts = [part for part, stays in self._parts() if not stays]

    def _parts(self) -> Iterator[tuple[str, bool]]:
        """The whole file part by part, and whether each stays. Split again each time, to save memory."""
        at = 0
        for found in LINE_ENDS.finditer(self._text):
            yield from self._line_parts(self._text[at : found.start()])
            yield found[0], True
            at = found.end()
        yield from self._line_parts(self._text[at:])

    def _line_parts(self, line: str) -> Iterator[tuple[str, bool]]:
        body = line.strip()
        start = line.index(body[0]) if body else len(line)
        yield line[:start], True
        if not body:
            return
        for sentence, space in split_sentences(body) if self._paragraphs else [(body, "")]:
            yield sentence, False
            yield space, True
        yield line[start + len(body) :], True

    def write(self, translations: Sequence[str | None]) -> bytes:
        """A text without a translation becomes empty."""
        rest = iter(translations)
        text = "".join(part if stays else next(rest) or "" for part, stays in self._parts())
        return self._bom + text.encode("utf-8", "surrogateescape")
