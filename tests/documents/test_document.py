"""Which format a document has."""

from pathlib import Path

import pytest

from regard.documents.document import DOCUMENTS, DocumentLayout, kind_of


def test_the_format_is_known_by_the_suffix() -> None:
    assert kind_of(Path("a.PO"), DocumentLayout()) == "po"
    assert kind_of(Path("README"), DocumentLayout()) == "text"
    assert kind_of(Path("a.xlf"), DocumentLayout()) == "xliff"
    assert kind_of(Path("a.dat"), DocumentLayout(kind="csv")) == "csv"
    with pytest.raises(ValueError, match="'pdf' is not a kind of file; there are csv, jsonl"):
        kind_of(Path("a.pdf"), DocumentLayout(kind="pdf"))


@pytest.mark.parametrize("kind", DOCUMENTS.builtin_names())
def test_every_format_is_documented(kind: str) -> None:
    docs = (Path(__file__).parents[2] / "docs" / "translating.md").read_text()
    assert all(f"`{suffix}`" in docs for suffix in DOCUMENTS.get(kind).suffixes), f"mention {kind} in docs/"
