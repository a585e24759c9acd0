"""Several target languages in one model: each is a symbol that its texts begin with (Johnson et al. 2016,
arXiv:1611.04558, who put it before the source)."""

import re
from collections.abc import Sequence

from regard.data.settings import LANGUAGE_SIGN
from regard.data.vocabulary import Vocabulary
from regard.errors import RegardError

SIGN = re.compile("^" + LANGUAGE_SIGN.format("([^ ]*)") + " ?")


def language_of(text: str) -> str:
    """What a text's sign says; empty if it has none."""
    found = SIGN.match(text)
    return found[1] if found else ""


def without_sign(text: str) -> str:
    """A text as people write it."""
    return SIGN.sub("", text)


def first_tokens(wanted: str, known: Sequence[str], says: Vocabulary) -> tuple[int, ...]:
    """What an output in a wanted language begins with; in the first of those known, if none is wanted."""
    if wanted and wanted not in known:
        raise RegardError(
            f"to: there is no {wanted!r}; this model says it in {', '.join(known) or 'one language only'}."
        )
    # As it is cut in training, where a blank may stand before the sign.
    return tuple(says.encode([LANGUAGE_SIGN.format(wanted or known[0])])[0]) if known else ()
