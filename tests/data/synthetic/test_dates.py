"""Dates: each is in one split, each text is unambiguous, and formats are those of the locale."""

import datetime
import itertools
import random
import re
from collections import defaultdict
from collections.abc import Sequence

import pytest
from babel.dates import format_date
from hypothesis import given
from hypothesis import strategies as st

from regard.data.synthetic import dates
from regard.data.synthetic.dates import FIRST_DATE, LAST_DATE, LOCALES, pairs, split_of, write_date, write_full_date

SPLITS = ["train", "valid", "test"]
days = st.dates(FIRST_DATE, LAST_DATE)


class FixedRandom(random.Random):
    """Chooses this pattern; its first random number is `draw`, the others cause no typo."""

    def __init__(self, pattern: str, draw: float) -> None:
        super().__init__(0)
        self.pattern, self.draws = pattern, iter([draw])

    def choice(self, seq: Sequence) -> str:  # type: ignore[override]
        assert self.pattern in seq
        return self.pattern

    def random(self) -> float:
        return next(self.draws, 0.999)


def test_a_date_is_in_one_split_only() -> None:
    dates_of = {split: {date for _, date in pairs(1000, split=split)} for split in SPLITS}
    for first, second in itertools.combinations(SPLITS, 2):
        assert not dates_of[first] & dates_of[second]
    assert all(split_of(datetime.date.fromisoformat(date)) == split for split in SPLITS for date in dates_of[split])


def test_the_splits_have_their_shares() -> None:
    total_days = (LAST_DATE - FIRST_DATE).days + 1
    found = [split_of(FIRST_DATE + datetime.timedelta(day)) for day in range(total_days)]
    assert found.count("test") / total_days == pytest.approx(0.10, abs=0.01)
    assert found.count("valid") / total_days == pytest.approx(0.05, abs=0.01)
    assert set(found) == set(SPLITS)


@pytest.mark.parametrize("split", SPLITS)
def test_pairs_are_reproducible_and_as_many_as_requested(split: str) -> None:
    first = list(pairs(200, split=split, seed=3))
    assert len(first) == 200
    assert first == list(pairs(200, split=split, seed=3))
    assert first[:50] == list(pairs(50, split=split, seed=3))
    assert first != list(pairs(200, split=split, seed=4))
    assert list(pairs(0, split=split)) == []


def test_no_text_is_ambiguous() -> None:
    """All patterns of all locales, with days that could be months, in lower case or not, with or without dots."""
    meanings = defaultdict(set)
    for locale in LOCALES:
        for pattern in set(dates._patterns(locale)):
            for month, day in itertools.product(range(1, 13), (1, 6, 12)):
                date = datetime.date(2004, month, day)
                for draw in (0.2, 0.35, 0.9):
                    meanings[write_date(date, locale, FixedRandom(pattern, draw))].add(date)
    assert {text: both for text, both in meanings.items() if len(both) > 1} == {}


def test_no_typo_makes_a_text_ambiguous() -> None:
    """Every possible typo in every pattern: "3 de juho de 2004" could be June as well as July."""
    meanings = defaultdict(set)

    class FixedTypo(random.Random):
        def __init__(self, word: int, at: int, kind: int) -> None:
            super().__init__(0)
            self.word, self.numbers = word, iter([at, kind])

        def choice(self, seq: Sequence):  # type: ignore[override]
            return seq[self.word]

        def randrange(self, *bounds: int) -> int:  # type: ignore[override]
            return next(self.numbers)

    for locale, month in itertools.product(LOCALES, range(1, 13)):
        for pattern in set(dates._patterns(locale)):
            text = format_date(datetime.date(2004, month, 3), pattern, locale).replace("\u200f", "")
            meanings[text].add(month)
            for number, word in enumerate(re.finditer(r"[^\W\d_]{5,}", text)):
                for at, kind in itertools.product(range(word.start() + 1, word.end() - 1), range(3)):
                    meanings[dates._typo(text, FixedTypo(number, at, kind))].add(month)
    assert len(meanings) > 5000
    assert {text: both for text, both in meanings.items() if len(both) > 1} == {}


@pytest.mark.parametrize(
    ("locale", "pattern", "draw", "text"),
    [
        ("pt", "full", 0.9, "quinta-feira, 3 de março de 2022"),
        ("pt", "full", 0.05, "QUINTA-FEIRA, 3 DE MARÇO DE 2022"),
        ("pt", "full", 0.35, "quinta-feira 3 de março de 2022"),
        ("en", "full", 0.9, "Thursday, March 3, 2022"),
        ("en", "full", 0.27, "Thursday,  March  3,  2022"),
        ("en_GB", "long", 0.2, "3 march 2022"),
        ("de", "long", 0.9, "3. März 2022"),
        ("de", "medium", 0.35, "03.03.2022"),
        ("fr", "full", 0.9, "jeudi 3 mars 2022"),
        ("ja", "full", 0.9, "2022年3月3日木曜日"),
        ("zh", "long", 0.9, "2022年3月3日"),
        ("hu", "long", 0.9, "2022. március 3."),
        ("el", "long", 0.9, "3 Μαρτίου 2022"),
        ("cs", "long", 0.05, "3. BŘEZNA 2022"),
        ("ko", "long", 0.9, "2022년 3월 3일"),
        ("nl", "long", 0.9, "3 maart 2022"),
    ],
)
def test_known_dates(locale: str, pattern: str, draw: float, text: str) -> None:
    from babel import Locale

    form = str(Locale.parse(locale).date_formats[pattern].pattern)
    assert write_date(datetime.date(2022, 3, 3), locale, FixedRandom(form, draw)) == text


def test_write_full_date_uses_the_full_form() -> None:
    assert write_full_date("2022-03-03", "pt") == "quinta-feira, 3 de março de 2022"
    assert write_full_date("1999-12-31", "en") == "Friday, December 31, 1999"


@given(date=days, locale=st.sampled_from(LOCALES), seed=st.integers(0, 99))
def test_every_text_has_the_year_and_the_day(date: datetime.date, locale: str, seed: int) -> None:
    text = write_date(date, locale, random.Random(seed))
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    assert date.year in numbers
    assert date.day in numbers


@pytest.mark.parametrize("locale", LOCALES)
def test_numeric_dates_have_the_day_first_and_four_digits_of_the_year(locale: str) -> None:
    for pattern in dates._patterns(locale):
        text = format_date(datetime.date(2031, 4, 25), pattern, locale)
        assert "2031" in text
        numbers = [int(number) for number in re.findall(r"\d+", text)]
        if numbers[-1] == 2031 and 4 in numbers:
            assert numbers[-3:] == [25, 4, 2031]


@given(text=st.text("abcdefgh 12.", max_size=20), seed=st.integers(0, 99))
def test_a_typo_changes_one_letter_inside_a_long_word(text: str, seed: int) -> None:
    changed_text = dates._typo(text, random.Random(seed))
    assert abs(len(changed_text) - len(text)) <= 1
    if not re.search("[a-h]{5}", text):
        assert changed_text == text
    before, after = re.split("[^a-h]+", text), re.split("[^a-h]+", changed_text)
    assert len(before) == len(after)
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) <= 1
    for old, new in changed:
        assert len(old) >= 5
        assert (old[0], old[-1]) == (new[0], new[-1]) or sorted(old) == sorted(new)


def test_typos_are_rare() -> None:
    date = datetime.date(2004, 9, 3)
    texts = [write_date(date, "en", random.Random(seed)).lower() for seed in range(3000)]
    typos = sum(not re.search(r"\b(september|sept?)\b", text) for text in texts)
    assert 15 < typos < 150
