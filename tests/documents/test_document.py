"""Detecting the format of a document."""

from pathlib import Path

import pytest

from regard.documents.document import DOCUMENTS, DocumentLayout, document_kind


def test_the_format_is_detected_by_the_suffix() -> None:
    assert document_kind(Path("a.PO"), DocumentLayout()) == "po"
    assert document_kind(Path("README"), DocumentLayout()) == "text"
    assert document_kind(Path("a.xlf"), DocumentLayout()) == "xliff"
    assert document_kind(Path("a.dat"), DocumentLayout(kind="csv")) == "csv"
    with pytest.raises(ValueError, match="'pdf' is not a kind of file; there are csv, jsonl"):
        document_kind(Path("a.pdf"), DocumentLayout(kind="pdf"))


@pytest.mark.parametrize("kind", DOCUMENTS.builtin_names())
def test_every_format_is_documented(kind: str) -> None:
    docs = (Path(__file__).parents[2] / "docs" / "translating.md").read_text()
    assert all(f"`{suffix}`" in docs for suffix in DOCUMENTS.get(kind).suffixes), f"mention {kind} in docs/"
