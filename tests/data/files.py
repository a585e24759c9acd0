"""Small files for the tests of readers, and the errors of invalid files."""

import gzip
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import strategies as st

from regard.data.example import Example, Layout
from regard.data.readers import read_aligned, read_pairs
from regard.data.settings import Column

# Text that any file may hold: without surrogates, control characters and unassigned characters.
plain_text = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), max_size=20)


def write(path: Path, content: str | bytes) -> Path:
    """A file of these bytes, or this text in UTF-8 with its line ends unchanged; gzipped if its name ends in .gz."""
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


def text_pairs(examples: Sequence[Example]) -> list[tuple[str, str]]:
    """The texts of examples, none of which has a problem."""
    assert [example.problem for example in examples] == [""] * len(examples)
    return [(example.source, example.target) for example in examples]


def is_one_sentence(message: str) -> bool:
    """Whether a message is one line that ends with one punctuation mark."""
    return bool(re.fullmatch(r"[^\s:,.][^\n]*[^\s.?][.?]", message))


def refusal(path: Path, partner: Path | None = None, **layout: str | int) -> str:
    """The error when a file is read: one sentence with the file name. Its folder is removed."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as error:
        _ = read(path, **layout) if partner is None else list(read_aligned(path, partner))  # type: ignore[arg-type]
    message = str(error.value)
    assert is_one_sentence(message), message
    return message.replace(f"{path.parent}/", "")  # the folder is named after the test, which could match by chance
