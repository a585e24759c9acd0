"""Text files, a text a line; or a paragraph a line, each split into sentences and put back."""

import re
from collections.abc import Sequence

from regard.documents import Layout, decoded
from regard.documents.sentences import sentences

LINE_ENDS = re.compile(r"\r\n|\n|\r")


class PlainText:
    """Lines of text. Line ends, empty lines and blanks around a line stay."""

    def __init__(self, content: bytes, name: str, layout: Layout) -> None:
        text, self._mark = decoded(content, name, lenient=True)
        self._parts: list[str | int] = []  # what stays, or the number of a text
        self.texts: Sequence[str] = []
        texts: list[str] = []
        at = 0
        for found in LINE_ENDS.finditer(text):
            self._line(text[at : found.start()], texts, layout.paragraphs)
            self._parts.append(found[0])
            at = found.end()
        self._line(text[at:], texts, layout.paragraphs)
        self.texts = texts

    def _line(self, line: str, texts: list[str], paragraphs: bool) -> None:
        body = line.strip()
        if not body:
            self._parts.append(line)
            return
        start = line.index(body[0])
        self._parts.append(line[:start])
        for sentence, blanks in sentences(body) if paragraphs else [(body, "")]:
            self._parts += [len(texts), blanks]
            texts.append(sentence)
        self._parts.append(line[start + len(body) :])

    def written(self, translations: Sequence[str | None]) -> bytes:
        """What has no translation is empty."""
        said = (part if isinstance(part, str) else translations[part] or "" for part in self._parts)
        return self._mark + "".join(said).encode("utf-8", "surrogateescape")
