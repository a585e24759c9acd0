"""Paragraphs into sentences and back: what stands between them is kept.

A sentence ends with . ! ? … or their relatives, and what closes after them, before a blank and something that can begin
one; in scripts that leave no blanks (。！？), at the sign itself. A small letter begins one where all are small, or
after a full stop that stands alone. After some abbreviations, an initial or a number's dot, nothing ends.
"""

import re
from collections.abc import Callable

ENDS = re.compile(
    r"""(?P<wide>[。！？｡]+[」』”’）)\]]*)          # these need no blank
        |[.!?…؟।۔]+["'»”’)\]]*(?=\s)          # these do""",
    re.VERBOSE,
)
WEAKER = [re.compile(pattern) for pattern in (r"[.!?…;:]+(\s+)", r"[,،、，](\s*)", r"(\s+)")]  # ends of parts, in order
ALONE = re.compile(r"\w\s+\.$")  # a full stop as tokenisers write it
BLANKS = re.compile(r"\s*")
ABBREVIATIONS = frozenset(
    """mr mrs ms dr prof st jr sr vs etc inc ltd co no nr dept est fig vol al ca cf eg ie approx e.g i.e a.m p.m u.s u.k
    bzw z.b d.h u.a usw ggf evtl inkl hr fr str abs bd m mme mlle mm p.ex env av sra srta sig dott
    jan feb mar apr jun jul aug sep sept oct nov dec""".split()  # noqa: SIM905
)


def sentences(paragraph: str) -> list[tuple[str, str]]:
    """Each sentence, and the white space that follows it; their concatenation is the paragraph."""
    parts: list[tuple[str, str]] = []
    at = 0
    small = paragraph == paragraph.lower()
    for found in ENDS.finditer(paragraph):
        end = found.end()
        blanks = BLANKS.match(paragraph, end)
        after = blanks.end() if blanks else end
        if after >= len(paragraph):
            break
        if found["wide"] is None and not _ends(paragraph[at:end], paragraph[after], small):
            continue
        parts.append((paragraph[at:end], paragraph[end:after]))
        at = after
    rest = paragraph[at:]
    if rest:
        text = rest.rstrip()
        parts.append((text, rest[len(text) :]))
    return parts


def parts_within(text: str, fits: Callable[[str], bool]) -> list[tuple[str, str]]:
    """The same for parts that fit: sentences, or, of one that does not, halves at its best place, however often."""
    if fits(text) or len(text) < 2:
        return [(text, "")]
    parts = sentences(text)
    if len(parts) < 2:
        parts = _halves(text)
    found: list[tuple[str, str]] = []
    for part, blanks in parts:
        smaller = parts_within(part, fits)
        found += [*smaller[:-1], (smaller[-1][0], smaller[-1][1] + blanks)]
    return found


def _halves(text: str) -> list[tuple[str, str]]:
    middle = len(text) / 2
    for pattern in WEAKER:
        places = [found for found in pattern.finditer(text) if found.start(1) > 0 and found.end() < len(text)]
        if places:
            best = min(places, key=lambda found: abs(found.start(1) - middle))
            return [(text[: best.start(1)], best[1]), (text[best.end() :], "")]
    return [(text[: len(text) // 2], ""), (text[len(text) // 2 :], "")]


def _ends(sentence: str, following: str, small: bool) -> bool:
    """Whether a sentence ends here, before this character. `small`: all letters are."""
    if ALONE.search(sentence):
        return True
    if following.islower() and not small:
        return False
    if not sentence.endswith("."):
        return True
    word = sentence.rsplit(maxsplit=1)[-1].rstrip(".").lstrip("(\"'«“‘[").lower()
    if word in ABBREVIATIONS or (len(word) == 1 and word.isalpha()):
        return False
    return not (word.isdigit() and len(word) < 3)  # the 3. of March
