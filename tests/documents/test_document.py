"""Detecting the format of a document."""

from pathlib import Path

import pytest

from regard.documents.document import DOCUMENTS, DocumentLayout, document_format


def test_the_format_is_detected_by_the_suffix() -> None:
    assert document_format(Path("a.PO"), DocumentLayout()) == "po"
    assert document_format(Path("README"), DocumentLayout()) == "text"
    assert document_format(Path("a.xlf"), DocumentLayout()) == "xliff"
    assert document_format(Path("a.dat"), DocumentLayout(format="csv")) == "csv"
    with pytest.raises(ValueError, match="'pdf' is not a file format; there are csv, jsonl"):
        document_format(Path("a.pdf"), DocumentLayout(format="pdf"))


@pytest.mark.parametrize("kind", DOCUMENTS.builtin_names())
def test_every_format_is_documented(kind: str) -> None:
    docs = (Path(__file__).parents[2] / "docs" / "translating.md").read_text()
    assert all(f"`{suffix}`" in docs for suffix in DOCUMENTS.get(kind).suffixes), f"mention {kind} in docs/"
