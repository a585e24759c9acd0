"""Documents for tests."""

from typing import Any

from regard.documents.document import Document, DocumentLayout, read_document


def read(content: str | bytes, kind: str, **about: Any) -> Document:
    raw = content.encode() if isinstance(content, str) else content
    return read_document(raw, f"file.{kind}", kind, DocumentLayout(**about))
