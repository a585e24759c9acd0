"""The built-in task: dates as people write them, in 44 languages (45 locales), to ISO 8601.

    quinta-feira, 3 de março de 2022  →  2022-03-03

Made by code from the Unicode consortium's locale data (Babel): full, long, medium and short forms, mixed ones,
capitals, stray spaces, lost punctuation, slips of the finger. Left out is what nobody could know: numbers with the
month before the day, years of two digits, and Croatian, where "listopad" is October while it is November for its
neighbours.
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
FIRST, LAST = datetime.date(1950, 1, 1), datetime.date(2049, 12, 31)
SHARES = {"test": 10, "valid": 5}  # of a hundred dates; the others are for training
SLIPS = 0.03


def pairs(count: int, *, part: str = "train", seed: int = 1) -> Iterator[tuple[str, str]]:
    """`count` pairs of a text and its date. A date of one part never appears in another, in any language."""
    dice = random.Random(f"{part} {seed}")
    days = (LAST - FIRST).days + 1
    while count:
        date = FIRST + datetime.timedelta(dice.randrange(days))
        if part_of(date) == part:
            yield written(date, dice.choice(LOCALES), dice), date.isoformat()
            count -= 1


def part_of(date: datetime.date) -> str:
    """Whether a date is for training, validation or test."""
    lot = hashlib.sha256(date.isoformat().encode()).digest()[0] * 100 // 256
    if lot < SHARES["test"]:
        return "test"
    return "valid" if lot < SHARES["test"] + SHARES["valid"] else "train"


def written(date: datetime.date, locale: str, dice: random.Random) -> str:
    """The date as somebody there might write it."""
    from babel.dates import format_date

    pattern = dice.choice(_patterns(locale))
    text = format_date(date, pattern, locale).replace("\u200f", "")
    numeric = not any(character.isalpha() for character in text)
    luck = dice.random()
    if luck < 0.1:
        text = text.upper()
    elif luck < 0.25:
        text = text.lower()
    elif luck < 0.3:
        text = text.replace(" ", "  ")
    elif luck < 0.4 and not numeric:
        text = re.sub(r"(?<=\w)[.,](?=\s|$)", "", text)
    if dice.random() < SLIPS and not numeric:
        text = _slip(text, dice)
    return text


@cache
def _patterns(locale: str) -> list[str]:
    """The forms of one place, by CLDR, and mixtures of them."""
    from babel import Locale

    forms = Locale.parse(locale).date_formats
    full, long, medium, short = (str(forms[name].pattern) for name in ("full", "long", "medium", "short"))
    full_year = [re.sub(r"(?<!y)yy(?!y)", "y", form) for form in (medium, short)]
    mixed = [full.replace("EEEE", "EEE"), full.replace("MMMM", "MMM"), long.replace("MMMM", "MMM")]
    kept = [form for form in full_year if not re.match(r"\W*M(?!MM)", form)]  # month first, in digits: not to be told
    return [full, long, *kept, *mixed]


def _slip(text: str, dice: random.Random) -> str:
    """A letter of a long word doubled, or swapped with the next. (Left out, it could turn June into July.)"""
    words = list(re.finditer(r"[^\W\d_]{5,}", text))
    if not words:
        return text
    word = dice.choice(words)
    at = dice.randrange(word.start() + 1, word.end() - 1)
    if dice.randrange(2):
        return text[:at] + text[at] + text[at:]
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def plainly(date: str, locale: str) -> str:
    """An ISO date in full, as the place writes it: for showing."""
    from babel.dates import format_date

    return str(format_date(datetime.date.fromisoformat(date), "full", locale))
