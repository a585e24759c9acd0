"""A document format: SubRip subtitles."""

import re
from collections.abc import Sequence

from regard.documents.document import DOCUMENTS, Document, DocumentLayout
from regard.documents.text_encoding import decode_utf8

CUE = re.compile(r"(?m)^(\d+\n[\d:,]+ --> [\d:,]+\n)(.+)$")


@DOCUMENTS.register("srt")
class Subtitles(Document):
    """Cues: a number, times, and one line of text."""

    suffixes = (".srt",)

    def __init__(self, content: bytes, name: str, layout: DocumentLayout) -> None:
        self._text, self._bom = decode_utf8(content, name)
        self.texts = [text for _, text in CUE.findall(self._text)]

    def write(self, translations: Sequence[str | None]) -> bytes:
        rest = iter(translations)
        text = CUE.sub(lambda cue: cue[1] + (next(rest) or cue[2]), self._text)
        return self._bom + text.encode()
