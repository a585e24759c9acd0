"""Terms of a glossary in a text, and their translations in its output."""

import numpy as np
import pytest

from regard.alignment.glossary import counts, spliced, terms_in

GLOSSARY = {"dog": "Köter", "dog run": "Auslauf", "Cat": "Katze", "": "x", "o": "y"}


def test_the_longest_terms_of_a_glossary_count() -> None:
    def said(text: str, glossary: dict[str, str] = GLOSSARY) -> list[str]:
        return [term.target for term in terms_in(text, glossary)]

    assert said("a DOG run and a cat") == ["Auslauf", "Katze"]
    assert said("the dog in the dog run, a dog") == ["Köter", "Auslauf", "Köter"]
    assert said("dogs run") == []
    assert said("我有狗", {"狗": "Hund"}) == ["Hund"]
    text = "a Dog"
    (term,) = terms_in(text, GLOSSARY)
    assert text[term.start : term.end] == "Dog"
    assert counts(terms_in("dog, dog and cat", GLOSSARY)) == {"Köter": 2, "Katze": 1}


def aligned(source: list[str], target: list[str], links: list[tuple[int, int]]) -> np.ndarray:
    weights = np.full((len(target), len(source)), 0.01, np.float32)
    for at, looks in links:
        weights[looks, at] += 1
    return weights


TRANSLATIONS = {"Köter": (90, 91), "Katze": (80,), "Auslauf": (70,), "x": (), "y": (1,)}


@pytest.mark.parametrize(
    ("source", "target", "links", "said"),
    [
        ("▁a ▁dog ▁runs </s>", "▁ein ▁Hund ▁rennt </s>", [(0, 0), (1, 1), (2, 2), (3, 3)], [10, 90, 91, 12, 13]),
        ("▁a ▁do g </s>", "▁ein ▁Hu nd . </s>", [(0, 0), (1, 1), (2, 2), (2, 3), (3, 4)], [10, 90, 91, 13, 14]),
        ("▁dog ▁run </s>", "▁ein ▁Platz </s>", [(0, 0), (1, 1), (2, 2)], [70, 12]),
        ("▁dog , ▁cat </s>", "▁Katze , ▁Hund </s>", [(0, 2), (1, 1), (2, 0), (3, 3)], [80, 11, 90, 91, 13]),
        ("▁dog ▁dog </s>", "▁Hund ▁und ▁Hund </s>", [(0, 0), (0, 1), (1, 2), (2, 3)], [90, 91, 90, 91, 13]),
    ],
)
def test_terms_take_the_place_of_the_model_s_own_words(
    source: str, target: str, links: list[tuple[int, int]], said: list[int]
) -> None:
    pieces = source.split(), target.split()
    tokens = list(range(10, 10 + len(pieces[1])))
    assert spliced(tokens, aligned(*pieces, links), pieces, GLOSSARY, TRANSLATIONS) == said


@pytest.mark.parametrize(
    ("source", "target", "links"),
    [
        ("▁a ▁dog </s>", "▁ein </s>", [(0, 0), (2, 1)]),  # it was left out
        ("▁dog ▁cat </s>", "▁Tiere </s>", [(0, 0), (2, 1)]),  # one word for two
        ("▁d <0x6F> g </s>", "▁Hund </s>", [(0, 0)]),  # letters that cannot be followed
        ("▁dog </s>", "</s>", [(1, 0)]),
    ],
)
def test_where_nobody_can_tell_nothing_is_replaced(source: str, target: str, links: list[tuple[int, int]]) -> None:
    pieces = source.split(), target.split()
    assert spliced([10, 11, 12][: len(pieces[1])], aligned(*pieces, links), pieces, GLOSSARY, TRANSLATIONS) is None
