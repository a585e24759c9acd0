"""Sources that are longer than a model reads."""

from hypothesis import given
from hypothesis import strategies as st

from regard.tokens import SEPARATOR, shortened

WORDS = st.lists(st.integers(5, 50), max_size=12)


@given(WORDS, st.integers(1, 12))
def test_a_text_is_cut_at_its_end(text: list[int], most: int) -> None:
    assert shortened(text, most, parted=False) == text[:most]


@given(WORDS, WORDS, st.integers(1, 26))
def test_a_question_and_what_is_nearest_to_it_stay(story: list[int], question: list[int], most: int) -> None:
    whole = [*story, SEPARATOR, *question]
    cut = shortened(whole, most, parted=True)
    assert len(cut) == min(most, len(whole))
    assert cut == whole[len(whole) - len(cut) :]


def test_without_parts_the_fifth_entry_is_a_word_like_any_other() -> None:
    assert shortened([7, SEPARATOR, 8, 9], 2, parted=False) == [7, SEPARATOR]
