"""Placeholders come out as they went in."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.placeholders import KINDS, MAX_PLACEHOLDERS, SYMBOLS, PlaceholderStatistics, Protection, restore

ALL = Protection(dict.fromkeys(KINDS, "symbol"))
EXAMPLES = {
    "printf": ["%s", "%d", "%(name)d", "%1$s", "%.2f", "%-5d", "%%", "%lu", "%@", "%(first name)s"],
    "brace": ["{name}", "{0}", "{}", "{{ user.name }}", "${HOME}", "{n:>10}"],
    "tag": ["<b>", "</b>", '<a href="https://x.org/?a=1&b=2">', "<br/>", "<br />", "<x:y-z>"],
    "entity": ["&amp;", "&#39;", "&#x27;", "&nbsp;"],
}
TEXTS = ["a 100% sure bet", "5 < 6 and 7 > 3", "AT&T; no", "{", "} {", "% s", "I <3 you", "50%of"]


@pytest.mark.parametrize("kind", EXAMPLES)
def test_each_kind_is_found_whole_and_nothing_else_is(kind: str) -> None:
    for example in EXAMPLES[kind]:
        found = ALL.protect(f"before {example} after, {example}.")
        assert found is not None
        assert found.originals == (example,)
        assert found.text == f"before {SYMBOLS[0]} after, {SYMBOLS[0]}."
        assert found.counts == {SYMBOLS[0]: 2}
        assert restore(found.text, found.originals) == f"before {example} after, {example}."
        others = Protection({other: "symbol" for other in EXAMPLES if other != kind})
        assert others.protect(f"x {example} y").text == f"x {example} y" or kind == "tag", "only its own kind"


def test_ordinary_text_is_left_alone() -> None:
    for text in TEXTS:
        assert ALL.protect(text).originals in ((), ("&T;",)), text


pieces = st.one_of(st.sampled_from([e for some in EXAMPLES.values() for e in some]), st.text(max_size=8))


@given(parts=st.lists(pieces, max_size=30))
def test_what_was_protected_is_restored(parts: list[str]) -> None:
    text = " ".join(parts)
    found = ALL.protect(text)
    if found is None:
        assert len(set(parts)) > MAX_PLACEHOLDERS
        return
    assert restore(found.text, found.originals) == text
    assert not (set(found.text) & set(SYMBOLS)) - set(found.counts)


@given(texts=st.lists(st.sampled_from("abc"), min_size=1, max_size=5), order=st.randoms())
def test_both_sides_get_the_same_symbols(texts: list[str], order) -> None:
    placeholders = [f"{{{name}}}" for name in texts]
    turned = list(placeholders)
    order.shuffle(turned)
    source, target = "x ".join(placeholders), " y".join(turned)
    pair = ALL.protect_pair(source, target)
    assert pair is not None
    assert Counter(c for c in pair[0] if c in SYMBOLS) == Counter(c for c in pair[1] if c in SYMBOLS)
    assert restore(pair[1], ALL.protect(source).originals) == target
    assert ALL.protect_pair(source, target + placeholders[0]) is None, "one too many"
    assert ALL.protect_pair(source + " {z}", target) is None, "one is lost"
    assert ALL.protect_pair(source, target + " {z}") is None, "one is new"


def test_characters_that_look_like_symbols_are_kept_too() -> None:
    text = f"{SYMBOLS[3]} and %s"
    found = ALL.protect(text)
    assert found.originals == (SYMBOLS[3], "%s")
    assert restore(found.text, found.originals) == text


def test_too_many_are_refused() -> None:
    assert ALL.protect(" ".join(f"{{{n}}}" for n in range(MAX_PLACEHOLDERS))) is not None
    assert ALL.protect(" ".join(f"{{{n}}}" for n in range(MAX_PLACEHOLDERS + 1))) is None


def test_kinds_on_which_the_sides_disagree_are_text() -> None:
    statistics = PlaceholderStatistics()
    for number in range(20):
        statistics.add(f"it &apos;s {number} for %s", f"es ist {number} für %s")
        statistics.add("<b>x</b>", "<b>y</b>" if number else "y")
        statistics.add("plain", "text")
    assert statistics.treatments() == {"printf": "symbol", "tag": "symbol", "entity": "text"}
    protection = Protection(statistics.treatments())
    assert protection.protect("it &apos;s %s").text == f"it &apos;s {SYMBOLS[0]}"
    assert protection.split_unknown("a {name} &amp; %s") == [("a ", False), ("{name}", True), (" &amp; %s", False)]
    assert [part for part, kept in protection.split_all("a {name} &amp; %s") if kept] == ["{name}", "%s"]


def test_without_placeholders_nothing_changes() -> None:
    nothing = Protection({})
    for text in TEXTS:
        assert nothing.protect(text).text == text
        assert nothing.protect_pair(text, "other %s") == (text, "other %s")
    assert [part for part, kept in nothing.split_unknown("a %s b <i>") if kept] == ["%s", "<i>"]
