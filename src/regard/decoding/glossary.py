"""Which terms of a glossary a text has. Imports no PyTorch."""

import re
from collections.abc import Mapping

from regard.data.door import tidy


def terms_in(text: str, glossary: Mapping[str, str]) -> list[str]:
    """What a text must become by a glossary: the longest terms that it has, whatever their case, as whole words where
    words are separated."""
    rest, found = tidy(text), {}
    for term in sorted(glossary, key=len, reverse=True):
        plain = tidy(term)
        if not plain:
            continue
        before = r"(?<!\w)" if _separated(plain[0]) else ""
        after = r"(?!\w)" if _separated(plain[-1]) else ""
        rest, count = re.subn(before + re.escape(plain) + after, "\n", rest, flags=re.IGNORECASE)
        if count:
            found[term] = glossary[term]
    return [found[term] for term in glossary if term in found]


def _separated(letter: str) -> bool:
    return letter.isdigit() or letter.upper() != letter.lower()
