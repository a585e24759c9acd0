"""Sources that are longer than a model reads."""

from hypothesis import given
from hypothesis import strategies as st

from regard.special_tokens import END, shortened

WORDS = st.lists(st.integers(5, 50), max_size=12)


@given(WORDS, st.integers(1, 12))
def test_a_text_is_cut_at_its_end(text: list[int], most: int) -> None:
    assert shortened(text, most) == text[:most]


@given(WORDS, WORDS, st.integers(1, 26))
def test_a_question_and_what_is_nearest_to_it_stay(story: list[int], question: list[int], most: int) -> None:
    whole = [*story, END, *question]
    cut = shortened(whole, most)
    assert len(cut) == min(most, len(whole))
    assert cut == whole[len(whole) - len(cut) :]
