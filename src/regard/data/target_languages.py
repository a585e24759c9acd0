"""Several target languages in one model: a target begins with a language tag, a token of its own.

Johnson et al. 2016 (arXiv:1611.04558), who put it before the source.
"""

import re
from collections.abc import Sequence

from regard.data.settings import LANGUAGE_TOKEN
from regard.data.vocabulary import Vocabulary
from regard.errors import RegardError

LANGUAGE_TOKEN_PATTERN = re.compile("^" + LANGUAGE_TOKEN.format("([^ ]*)") + " ?")


def language_of(text: str) -> str:
    """The language that a text's tag names; empty if it has none."""
    match = LANGUAGE_TOKEN_PATTERN.match(text)
    return match[1] if match else ""


def strip_language_token(text: str) -> str:
    """A text without its language tag."""
    return LANGUAGE_TOKEN_PATTERN.sub("", text)


def language_tokens(language: str, known: Sequence[str], vocabulary: Vocabulary) -> tuple[int, ...]:
    """The first tokens of an output in a language, or in the first known one if it is empty."""
    if language and language not in known:
        raise RegardError(
            f"to: there is no {language!r}; the target languages of this model are {', '.join(known) or 'not known'}."
        )
    # Tokenized as in training, where a space may come before the tag.
    return tuple(vocabulary.encode([LANGUAGE_TOKEN.format(language or known[0])])[0]) if known else ()
