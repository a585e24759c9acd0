"""Truncation of sources that are longer than a model's maximum."""

from hypothesis import given
from hypothesis import strategies as st

from regard.special_tokens import EOS, truncate

TOKENS = st.lists(st.integers(5, 50), max_size=12)


@given(TOKENS, st.integers(1, 12))
def test_a_text_is_truncated_at_its_end(text: list[int], max_tokens: int) -> None:
    assert truncate(text, max_tokens) == text[:max_tokens]


@given(TOKENS, TOKENS, st.integers(1, 26))
def test_the_question_and_its_nearest_context_are_kept(
    context: list[int], question: list[int], max_tokens: int
) -> None:
    tokens = [*context, EOS, *question]
    truncated = truncate(tokens, max_tokens)
    assert len(truncated) == min(max_tokens, len(tokens))
    assert truncated == tokens[len(tokens) - len(truncated) :]
