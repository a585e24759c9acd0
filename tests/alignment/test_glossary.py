"""Matching terms of a glossary in a text, and replacing their translations in an output."""

import numpy as np
import pytest

from regard.alignment.glossary import find_terms, replace_aligned_terms, required_counts

GLOSSARY = {"dog": "Köter", "dog run": "Auslauf", "Cat": "Katze", "": "x", "o": "y"}


def test_the_longest_terms_match_as_whole_words_in_any_case() -> None:
    def targets(text: str, glossary: dict[str, str] = GLOSSARY) -> list[str]:
        return [term.target for term in find_terms(text, glossary)]

    assert targets("a DOG run and a cat") == ["Auslauf", "Katze"]
    assert targets("the dog in the dog run, a dog") == ["Köter", "Auslauf", "Köter"]
    assert targets("dogs run") == []
    assert targets("我有狗", {"狗": "Hund"}) == ["Hund"]
    text = "a Dog"
    (term,) = find_terms(text, GLOSSARY)
    assert text[term.start : term.end] == "Dog"
    assert required_counts(find_terms("dog, dog and cat", GLOSSARY)) == {"Köter": 2, "Katze": 1}


def weights_of_links(source: list[str], target: list[str], links: list[tuple[int, int]]) -> np.ndarray:
    weights = np.full((len(target), len(source)), 0.01, np.float32)
    for source_position, target_position in links:
        weights[target_position, source_position] += 1
    return weights


TRANSLATIONS = {"Köter": (90, 91), "Katze": (80,), "Auslauf": (70,), "x": (), "y": (1,)}


@pytest.mark.parametrize(
    ("source", "target", "links", "expected"),
    [
        ("▁a ▁dog ▁runs </s>", "▁ein ▁Hund ▁rennt </s>", [(0, 0), (1, 1), (2, 2), (3, 3)], [10, 90, 91, 12, 13]),
        ("▁a ▁do g </s>", "▁ein ▁Hu nd . </s>", [(0, 0), (1, 1), (2, 2), (2, 3), (3, 4)], [10, 90, 91, 13, 14]),
        ("▁dog ▁run </s>", "▁ein ▁Platz </s>", [(0, 0), (1, 1), (2, 2)], [70, 12]),
        ("▁dog , ▁cat </s>", "▁Katze , ▁Hund </s>", [(0, 2), (1, 1), (2, 0), (3, 3)], [80, 11, 90, 91, 13]),
        ("▁dog ▁dog </s>", "▁Hund ▁und ▁Hund </s>", [(0, 0), (0, 1), (1, 2), (2, 3)], [90, 91, 90, 91, 13]),
    ],
)
def test_glossary_translations_replace_the_aligned_target_tokens(
    source: str, target: str, links: list[tuple[int, int]], expected: list[int]
) -> None:
    pieces = source.split(), target.split()
    tokens = list(range(10, 10 + len(pieces[1])))
    assert replace_aligned_terms(tokens, weights_of_links(*pieces, links), pieces, GLOSSARY, TRANSLATIONS) == expected


@pytest.mark.parametrize(
    ("source", "target", "links"),
    [
        ("▁a ▁dog </s>", "▁ein </s>", [(0, 0), (2, 1)]),  # the term was not translated
        ("▁dog ▁cat </s>", "▁Tiere </s>", [(0, 0), (2, 1)]),  # one word for two
        ("▁d <0x6F> g </s>", "▁Hund </s>", [(0, 0)]),  # characters split into bytes
        ("▁dog </s>", "</s>", [(1, 0)]),
    ],
)
def test_nothing_is_replaced_where_the_alignment_is_ambiguous(
    source: str, target: str, links: list[tuple[int, int]]
) -> None:
    pieces = source.split(), target.split()
    assert (
        replace_aligned_terms(
            [10, 11, 12][: len(pieces[1])], weights_of_links(*pieces, links), pieces, GLOSSARY, TRANSLATIONS
        )
        is None
    )
