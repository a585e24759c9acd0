"""Texts in, results out: in order, whatever the batches."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.data.subwords import Subwords
from regard.decoding import translator
from regard.decoding.bundle import Bundle
from regard.decoding.search import Search, search
from regard.decoding.translator import cross_attention, new_search, translate
from regard.tokens import END
from tests.decoding.conftest import bundle_of
from tests.models.variants import DECODERS

TEXTS = ["the cat", "a dog ran in the park", "", "cat", "the dog and the cat", "Hund", "ünknöwn 字"]


def test_results_come_in_the_order_of_the_texts(bundle: Bundle) -> None:
    how = new_search(bundle, beam=3, nbest=3)
    results = translate(bundle, TEXTS, how)
    assert [result.source for result in results] == TEXTS
    assert any(result.left_out for result in results)
    for text, result in zip(TEXTS, results, strict=True):
        tokens = [*bundle.source_subwords.encode([text])[0][:11], END]
        assert result.source_tokens == tokens
        assert result.left_out == max(0, len(bundle.source_subwords.encode([text])[0]) - 11)
        source = torch.tensor([tokens])
        (found,) = search(bundle.model, source, source > 0, how)
        assert result.tokens == found[0].tokens
        assert result.score == pytest.approx(found[0].score, abs=1e-4)
        said = bundle.target_subwords.decode([h.tokens for h in found])
        assert [result.text, *result.others] == said


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.sampled_from(TEXTS), max_size=9),
    at_once=st.integers(1, 60),
    most=st.integers(1, 5),
)
def test_the_size_of_batches_changes_nothing(bundle: Bundle, texts: list[str], at_once: int, most: int) -> None:
    how = new_search(bundle, beam=2)
    alone = {text: translate(bundle, [text], how)[0] for text in set(texts)}
    heard: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translator, "AT_ONCE", at_once)
        patch.setattr(translator, "MOST", most)
        results = translate(bundle, texts, how, done=heard.append)
    assert [result.tokens for result in results] == [alone[text].tokens for text in texts]
    assert sum(heard) == len(texts)
    assert all(0 < count <= most for count in heard)


@given(text=st.text(max_size=30))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_has_a_translation(bundle: Bundle, text: str) -> None:
    (result,) = translate(bundle, [text], new_search(bundle, beam=1))
    assert result.source == text
    assert result.tokens[-1] == END


def test_white_space_means_what_it_meant_in_training(bundle: Bundle) -> None:
    """Training tidies it: runs of blanks, tabs and line ends are one blank."""
    plain, wild = translate(bundle, ["the cat sat", " the\tcat \n sat\r\n"], new_search(bundle, beam=1))
    assert wild.source_tokens == plain.source_tokens


def test_lowercase_models_read_lowercase(subwords: Subwords) -> None:
    small = bundle_of(subwords, "recurrent", "bahdanau", lowercase=True)
    loud, quiet = translate(small, ["The CAT", "the cat"], new_search(small, beam=1))
    assert loud.source_tokens == quiet.source_tokens
    assert loud.source == "The CAT"
    plain = bundle_of(subwords, "recurrent", "bahdanau")
    loud, quiet = translate(plain, ["The CAT", "the cat"], new_search(plain, beam=1))
    assert loud.source_tokens != quiet.source_tokens


def test_a_search_has_the_limits_that_suit_the_model(subwords: Subwords) -> None:
    bundle = bundle_of(subwords, "recurrent", "bahdanau", longest=9, per_token=1.25)
    how = new_search(bundle, beam=4, nbest=2, length_penalty=0.5, coverage_penalty=0.1)
    assert how == Search(4, 0.5, 0.1, 2, 1.25, 9)
    (result,) = translate(bundle, ["the cat sat on the mat and the dog ran in the park"], how)
    assert len(result.source_tokens) == 9
    assert result.source_tokens[-1] == END
    assert len(result.tokens) <= 9


@pytest.mark.parametrize(
    ("decoder", "layers", "heads"), [("bahdanau", 1, 1), ("transformer", 2, 2), ("convolutional", 2, 1), ("cho", 0, 0)]
)
def test_attention_is_captured_by_one_forced_pass(subwords: Subwords, decoder: str, layers: int, heads: int) -> None:
    bundle = bundle_of(subwords, "recurrent", decoder)
    (result,) = translate(bundle, ["the cat sat"], new_search(bundle))
    found = cross_attention(bundle, iter(result.source_tokens), iter(result.tokens))
    assert len(found) == layers
    for weights in found:
        assert weights.shape == (heads, len(result.tokens), len(result.source_tokens))
        torch.testing.assert_close(weights.sum(-1), torch.ones(heads, len(result.tokens)))


@pytest.mark.parametrize("decoder", ["learned", "convolutional"])
def test_a_model_with_few_places_says_no_more_than_it_has_places_for(subwords: Subwords, decoder: str) -> None:
    places = 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DECODERS, decoder, {**DECODERS[decoder], "positions": places})
        bundle = bundle_of(subwords, "recurrent", decoder)
    with torch.no_grad():
        bundle.model.output.bias[END] = -1e4  # never ends by itself
    (result,) = translate(bundle, ["the cat"], new_search(bundle, beam=2))
    assert len(result.tokens) <= places
