"""Small files for the tests of readers, and what is said about wrong ones."""

import gzip
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import strategies as st

from regard.data.example import Example, Layout
from regard.data.readers import read_aligned, read_pairs
from regard.data.settings import Column

# Text that any file may hold: no half characters, no control characters, none that Unicode has no use for.
plain_text = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), max_size=20)


def write(path: Path, content: str | bytes) -> Path:
    """A file of these bytes, or this text in UTF-8, its line ends untouched; gzipped if its name says so."""
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.name.endswith(".gz") else raw)
    return path


def read(
    path: Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    source_column: Column | None = None,
    target_column: Column | None = None,
) -> list[Example]:
    return list(read_pairs(path, Layout(source_language, target_language, source_column, target_column)))


def sides(examples: Sequence[Example]) -> list[tuple[str, str]]:
    """The texts of examples with nothing wrong."""
    assert [example.problem for example in examples] == [""] * len(examples)
    return [(example.source, example.target) for example in examples]


def is_one_sentence(message: str) -> bool:
    """One line that starts with something and ends as a sentence does, once."""
    return bool(re.fullmatch(r"[^\s:,.][^\n]*[^\s.?][.?]", message))


def refusal(path: Path, partner: Path | None = None, **layout: str | int) -> str:
    """What is said when the file is read; it must be one sentence with its name. Folders are left out."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        _ = read(path, **layout) if partner is None else list(read_aligned(path, partner))  # type: ignore[arg-type]
    message = str(caught.value)
    assert is_one_sentence(message), message
    return message.replace(f"{path.parent}/", "")  # the folder is named after the test, and would match anything
