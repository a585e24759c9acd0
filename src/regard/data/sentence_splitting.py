"""Splits paragraphs into sentences; the white space between them is kept, so that they can be joined again.

A sentence ends with . ! ? … or similar and closing quotes or brackets, before white space and a character that can
begin a sentence; in scripts without spaces (。！？), at the punctuation itself. A lower-case letter begins a sentence
only where all letters are lower-case, or after a full stop with a space before it. Some abbreviations, an initial or a
number with a dot do not end a sentence.
"""

import re
from collections.abc import Callable

SENTENCE_END = re.compile(
    r"""(?P<wide>[。！？｡]+[」』”’）)\]]*)          # these need no space
        |[.!?…؟।۔]+["'»”’)\]]*(?=\s)          # these do""",
    re.VERBOSE,
)
# Where a sentence that is too long may be split, the best first.
SPLIT_POINTS = [re.compile(pattern) for pattern in (r"[.!?…;:]+(\s+)", r"[,،、，](\s*)", r"(\s+)")]
SPACED_FULL_STOP = re.compile(r"\w\s+\.$")  # as in tokenized text
SPACE = re.compile(r"\s*")
ABBREVIATIONS = frozenset(
    """mr mrs ms dr prof st jr sr vs etc inc ltd co no nr dept est fig vol al ca cf eg ie approx e.g i.e a.m p.m u.s u.k
    bzw z.b d.h u.a usw ggf evtl inkl hr fr str abs bd m mme mlle mm p.ex env av sra srta sig dott
    jan feb mar apr jun jul aug sep sept oct nov dec""".split()  # noqa: SIM905
)


def split_sentences(paragraph: str) -> list[tuple[str, str]]:
    """Each sentence, and the white space that follows it; joined, they are the paragraph."""
    sentences: list[tuple[str, str]] = []
    at = 0
    is_lower = paragraph == paragraph.lower()
    for match in SENTENCE_END.finditer(paragraph):
        end = match.end()
        space = SPACE.match(paragraph, end)
        after = space.end() if space else end
        if after >= len(paragraph):
            break
        if match["wide"] is None and not _ends_sentence(paragraph[at:end], paragraph[after], is_lower):
            continue
        sentences.append((paragraph[at:end], paragraph[end:after]))
        at = after
    rest = paragraph[at:]
    if rest:
        text = rest.rstrip()
        sentences.append((text, rest[len(text) :]))
    return sentences


def split_to_fit(text: str, fits: Callable[[str], bool]) -> list[tuple[str, str]]:
    """Fragments that fit, each with the white space after it: sentences, or halves of a sentence that does not fit."""
    if fits(text) or len(text) < 2:
        return [(text, "")]
    sentences = split_sentences(text)
    if len(sentences) < 2:
        sentences = _halves(text)
    fragments: list[tuple[str, str]] = []
    for sentence, space in sentences:
        smaller = split_to_fit(sentence, fits)
        fragments += [*smaller[:-1], (smaller[-1][0], smaller[-1][1] + space)]
    return fragments


def _halves(text: str) -> list[tuple[str, str]]:
    """Two halves of about the same length, split at the best kind of split point that there is."""
    middle = len(text) / 2
    for pattern in SPLIT_POINTS:
        points = [match for match in pattern.finditer(text) if match.start(1) > 0 and match.end() < len(text)]
        if points:
            best = min(points, key=lambda match: abs(match.start(1) - middle))
            return [(text[: best.start(1)], best[1]), (text[best.end() :], "")]
    return [(text[: len(text) // 2], ""), (text[len(text) // 2 :], "")]


def _ends_sentence(sentence: str, following: str, is_lower: bool) -> bool:
    """Whether a sentence ends before this character. is_lower: the whole text is in lower case."""
    if SPACED_FULL_STOP.search(sentence):
        return True
    if following.islower() and not is_lower:
        return False
    if not sentence.endswith("."):
        return True
    word = sentence.rsplit(maxsplit=1)[-1].rstrip(".").lstrip("(\"'«“‘[").lower()
    if word in ABBREVIATIONS or (len(word) == 1 and word.isalpha()):
        return False
    return not (word.isdigit() and len(word) < 3)  # the 3. of March
