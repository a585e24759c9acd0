"""Dates in the formats that people use, in 44 languages (45 locales), to ISO 8601.

    quinta-feira, 3 de março de 2022  →  2022-03-03

Generated from the Unicode consortium's locale data (Babel): full, long, medium and short forms, mixed ones, capitals,
stray spaces, lost punctuation, typos. Ambiguous dates are left out: numbers with the
month before the day, years of two digits, and Croatian, where "listopad" is October while it is November for its
neighbors.
"""

import datetime
import hashlib
import random
import re
from collections.abc import Iterator
from functools import cache

LOCALES = [
    "en",
    "en_GB",
    "de",
    "fr",
    "es",
    "pt",
    "it",
    "nl",
    "sv",
    "da",
    "nb",
    "fi",
    "is",
    "pl",
    "cs",
    "sk",
    "sl",
    "hu",
    "ro",
    "bg",
    "uk",
    "ru",
    "el",
    "tr",
    "lt",
    "lv",
    "et",
    "ca",
    "eu",
    "gl",
    "ga",
    "cy",
    "id",
    "ms",
    "vi",
    "zh",
    "ja",
    "ko",
    "hi",
    "th",
    "ar",
    "he",
    "fa",
    "sw",
    "af",
]
FIRST_DATE, LAST_DATE = datetime.date(1950, 1, 1), datetime.date(2049, 12, 31)
SPLIT_PERCENT = {"test": 10, "valid": 5}  # of all dates; the others are for training
TYPO_RATE = 0.03


def pairs(count: int, *, split: str = "train", seed: int = 1) -> Iterator[tuple[str, str]]:
    """`count` pairs of a text and its date. A date of one split is in no other split, in any language."""
    rng = random.Random(f"{split} {seed}")
    days = (LAST_DATE - FIRST_DATE).days + 1
    while count:
        date = FIRST_DATE + datetime.timedelta(rng.randrange(days))
        if split_of(date) == split:
            yield write_date(date, rng.choice(LOCALES), rng), date.isoformat()
            count -= 1


def split_of(date: datetime.date) -> str:
    """Whether a date is for training, validation or test."""
    percentile = hashlib.sha256(date.isoformat().encode()).digest()[0] * 100 // 256
    if percentile < SPLIT_PERCENT["test"]:
        return "test"
    return "valid" if percentile < SPLIT_PERCENT["test"] + SPLIT_PERCENT["valid"] else "train"


def write_date(date: datetime.date, locale: str, rng: random.Random) -> str:
    """The date in a random format of a locale, sometimes in capitals or with a typo."""
    from babel.dates import format_date

    pattern = rng.choice(_patterns(locale))
    text = format_date(date, pattern, locale).replace("\u200f", "")
    numeric = not any(character.isalpha() for character in text)
    draw = rng.random()
    if draw < 0.1:
        text = text.upper()
    elif draw < 0.25:
        text = text.lower()
    elif draw < 0.3:
        text = text.replace(" ", "  ")
    elif draw < 0.4 and not numeric:
        text = re.sub(r"(?<=\w)[.,](?=\s|$)", "", text)
    if rng.random() < TYPO_RATE and not numeric:
        text = _typo(text, rng)
    return text


@cache
def _patterns(locale: str) -> list[str]:
    """The date patterns of a locale, by CLDR, and mixtures of them."""
    from babel import Locale

    forms = Locale.parse(locale).date_formats
    full, long, medium, short = (str(forms[name].pattern) for name in ("full", "long", "medium", "short"))
    full_year = [re.sub(r"(?<!y)yy(?!y)", "y", form) for form in (medium, short)]
    mixed = [full.replace("EEEE", "EEE"), full.replace("MMMM", "MMM"), long.replace("MMMM", "MMM")]
    unambiguous = [form for form in full_year if not re.match(r"\W*M(?!MM)", form)]  # month first, in digits: ambiguous
    return [full, long, *unambiguous, *mixed]


def _typo(text: str, rng: random.Random) -> str:
    """A letter of a long word doubled, or swapped with the next. (Left out, it could turn June into July.)"""
    words = list(re.finditer(r"[^\W\d_]{5,}", text))
    if not words:
        return text
    word = rng.choice(words)
    at = rng.randrange(word.start() + 1, word.end() - 1)
    if rng.randrange(2):
        return text[:at] + text[at] + text[at:]
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def write_full_date(date: str, locale: str) -> str:
    """An ISO date in the full form of a locale, for display."""
    from babel.dates import format_date

    return str(format_date(datetime.date.fromisoformat(date), "full", locale))
