"""Placeholders are protected by symbols and restored unchanged."""

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
def test_each_kind_is_matched_exactly(kind: str) -> None:
    for example in EXAMPLES[kind]:
        found = ALL.protect(f"before {example} after, {example}.")
        assert found is not None
        assert found.originals == (example,)
        assert found.text == f"before {SYMBOLS[0]} after, {SYMBOLS[0]}."
        assert found.counts == {SYMBOLS[0]: 2}
        assert restore(found.text, found.originals) == f"before {example} after, {example}."
        without_kind = Protection({other: "symbol" for other in EXAMPLES if other != kind})
        assert without_kind.protect(f"x {example} y").text == f"x {example} y" or kind == "tag", "only its own kind"


def test_ordinary_text_is_unchanged() -> None:
    for text in TEXTS:
        assert ALL.protect(text).originals in ((), ("&T;",)), text


pieces = st.one_of(st.sampled_from([e for some in EXAMPLES.values() for e in some]), st.text(max_size=8))


@given(fragments=st.lists(pieces, max_size=30))
def test_restoring_gives_the_original_text(fragments: list[str]) -> None:
    text = " ".join(fragments)
    found = ALL.protect(text)
    if found is None:
        assert len(set(fragments)) > MAX_PLACEHOLDERS
        return
    assert restore(found.text, found.originals) == text
    assert not (set(found.text) & set(SYMBOLS)) - set(found.counts)


@given(texts=st.lists(st.sampled_from("abc"), min_size=1, max_size=5), order=st.randoms())
def test_both_sides_get_the_same_symbols(texts: list[str], order) -> None:
    placeholders = [f"{{{name}}}" for name in texts]
    shuffled = list(placeholders)
    order.shuffle(shuffled)
    source, target = "x ".join(placeholders), " y".join(shuffled)
    pair = ALL.protect_pair(source, target)
    assert pair is not None
    assert Counter(c for c in pair[0] if c in SYMBOLS) == Counter(c for c in pair[1] if c in SYMBOLS)
    assert restore(pair[1], ALL.protect(source).originals) == target
    assert ALL.protect_pair(source, target + placeholders[0]) is None, "one too many"
    assert ALL.protect_pair(source + " {z}", target) is None, "one is lost"
    assert ALL.protect_pair(source, target + " {z}") is None, "one is new"


def test_symbol_characters_in_the_text_are_protected_too() -> None:
    text = f"{SYMBOLS[3]} and %s"
    found = ALL.protect(text)
    assert found.originals == (SYMBOLS[3], "%s")
    assert restore(found.text, found.originals) == text


def test_too_many_placeholders_give_none() -> None:
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
    assert [fragment for fragment, is_placeholder in protection.split_all("a {name} &amp; %s") if is_placeholder] == [
        "{name}",
        "%s",
    ]


def test_without_placeholders_nothing_changes() -> None:
    no_kinds = Protection({})
    for text in TEXTS:
        assert no_kinds.protect(text).text == text
        assert no_kinds.protect_pair(text, "other %s") == (text, "other %s")
    assert [fragment for fragment, is_placeholder in no_kinds.split_unknown("a %s b <i>") if is_placeholder] == [
        "%s",
        "<i>",
    ]
