"""Terms of a glossary in a text."""

from regard.decoding.glossary import terms_in


def test_the_longest_terms_of_a_glossary_count() -> None:
    glossary = {"dog": "Hund", "dog run": "Auslauf", "Cat": "Katze", "": "x", "o": "y"}
    assert terms_in("a DOG  run and a cat", glossary) == ["Auslauf", "Katze"]
    assert terms_in("the dog in the dog run", glossary) == ["Hund", "Auslauf"]
    assert terms_in("dogs run", glossary) == []
    assert terms_in("我有狗", {"狗": "Hund"}) == ["Hund"]
