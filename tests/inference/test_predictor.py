"""Texts in, results out: in order, whatever the batches."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.data.placeholders import SYMBOLS
from regard.data.sentence_splitting import split_sentences, split_to_fit
from regard.data.settings import SubwordSettings
from regard.data.tokenizers.sentencepiece_tokenizer import train_tokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.inference import predictor as predictors
from regard.inference import sequence_pipeline
from regard.inference.chunked_text import ChunkedText
from regard.inference.options import Options
from regard.inference.results import Result, SearchConfig
from regard.inference.search_algorithm import search
from regard.inference.text_inputs import TextInputs
from regard.loading import predictor_from_bundle
from regard.runs.bundle import Bundle
from regard.special_tokens import END
from tests.bundles import LINES, random_bundle
from tests.models.variants import DECODERS

TEXTS = ["the cat", "a dog ran in the park", "", "cat", "the dog and the cat", "Hund", "ünknöwn 字"]


def test_results_come_in_the_order_of_the_texts(bundle: Bundle) -> None:
    translator = predictor_from_bundle(bundle)
    options = Options(beam=3, nbest=3)
    results = translator.translate(TEXTS, options)
    assert [result.source for result in results] == TEXTS
    assert any(result.chunk_count > 1 for result in results)
    for text, result in zip(TEXTS, results, strict=True):
        if not text:
            assert (result.text, result.tokens, result.error) == ("", [], "")
            continue
        tokens = [*bundle.source_side.encode([text])[0], END]
        assert (result.chunk_count > 1) == (len(tokens) > 12)
        if result.chunk_count > 1:
            continue
        assert result.source_tokens == tokens
        source = torch.tensor([tokens])
        (found,) = search(bundle.model, source, source > 0, translator.run.search_config(options))
        assert result.tokens == found[0].tokens
        assert result.score == pytest.approx(found[0].score, abs=1e-4)
        said = bundle.target_side.decode([h.tokens for h in found])
        assert [result.text, *(other.text for other in result.alternatives)] == said
        assert [other.tokens for other in result.alternatives] == [h.tokens for h in found[1:]]


def test_what_is_too_long_is_translated_in_parts(bundle: Bundle) -> None:
    translator = predictor_from_bundle(bundle)
    words = "cat dog, the park and Hund " * 30
    result = translator.translate(f"  {words}\t", beam=1)
    parts = [part for part, _ in split_to_fit(f"  {words}\t", TextInputs(translator.run).within_max_length)]
    assert result.chunk_count == sum(bool(part.strip()) for part in parts) > 10
    assert all(len(bundle.source_side.encode([part])[0]) < 12 for part in parts)
    alone = [translator.translate(part.strip(), beam=1).text for part in parts if part.strip()]
    assert result.text.split() == " ".join(alone).split(), "nothing is left out"


@pytest.mark.parametrize("wrong", [None, 5, b"cat", [None], ["cat", 5]])
def test_what_is_no_text_is_a_sentence(bundle: Bundle, wrong: Any) -> None:
    with pytest.raises(ValueError, match="is not a text; give a text, or a list of texts"):
        predictor_from_bundle(bundle).translate(wrong)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"required": "cat"}, "required: give a list of words"),
        ({"forbidden": [5]}, "forbidden: give a list of words"),
        ({"glossary": ["a"]}, "glossary: it must be terms and their translations"),
        ({"beam": 2.5}, "beam: 2.5 is not possible; it must be a whole number"),
        ({"nbest": "3"}, "nbest: '3' is not possible"),
        ({"nbest": 0}, "nbest: 0 is not possible; it must be at least 1 and at most 1,000"),
        ({"max_length_ratio": float("inf")}, "max_length_ratio: inf is not possible; it must be a number"),
        ({"length_penalty": float("nan")}, "length_penalty: nan is not possible"),
        ({"diversity_penalty": -1}, "diversity_penalty: -1.0 is not possible"),
        ({"top_k": 0}, "top_k: 0 is not possible"),
        ({"prefix": 5}, "prefix: 5 is not possible; it must be text"),
        ({"required": ["a"], "temperature": 0.5}, "need beam search"),
        ({"required": ["a"], "forbidden": ["a"]}, "'a' is both required and forbidden"),
    ],
)
def test_impossible_options_are_sentences(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options.from_dict(options)


def test_one_text_a_list_and_a_stream(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = predictor_from_bundle(bundle)
    together = translator.translate(TEXTS, beam=2)
    alone = translator.translate(TEXTS[1], beam=2)
    assert isinstance(alone, Result)
    assert alone.tokens == together[1].tokens
    monkeypatch.setattr(predictors, "STREAM_BATCH", 3)
    read: list[str] = []

    def texts() -> Iterator[str]:
        for text in TEXTS:
            read.append(text)
            yield text

    stream = translator.translate(texts(), beam=2)
    assert next(stream).tokens == together[0].tokens
    assert read == TEXTS[:3], "no more is read than is translated together"
    assert [result.tokens for result in stream] == [result.tokens for result in together[1:]]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.sampled_from(TEXTS), max_size=9),
    at_once=st.integers(1, 60),
    most=st.integers(1, 5),
)
def test_the_size_of_batches_changes_nothing(bundle: Bundle, texts: list[str], at_once: int, most: int) -> None:
    translator = predictor_from_bundle(bundle)
    options = Options(beam=2)
    alone = {text: translator.translate(text, options) for text in set(texts)}
    heard: list[int] = []
    translator.run.engine.batch_tokens = at_once
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence_pipeline, "MAX_BATCH", most)
        results = translator.results(texts, options, on_done=heard.append)
    assert [result.text for result in results] == [alone[text].text for text in texts]
    assert sum(heard) == len(texts)
    assert heard[0] == texts.count(""), "what is empty is done at once"
    in_parts = sum(result.chunk_count > 1 for result in results)
    assert all(0 < count <= max(most, in_parts) for count in heard[1:])


@given(text=st.text(max_size=30))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_has_a_translation(bundle: Bundle, text: str) -> None:
    result = predictor_from_bundle(bundle).translate(text, beam=1)
    assert result.source == text
    assert result.tokens[-1:] == ([END] if result.source_tokens else [])
    assert not result.error


def test_a_wrong_text_does_not_stop_the_others(bundle: Bundle) -> None:
    translator = predictor_from_bundle(bundle)
    good, bad, also = translator.translate(["the cat", "half \ud83d a smile", "a dog"], beam=2)
    assert bad.error == "it is not UTF-8, or has half a character (a lone surrogate)"
    assert (bad.text, bad.tokens) == ("", [])
    assert [good.tokens, also.tokens] == [r.tokens for r in translator.translate(["the cat", "a dog"], beam=2)]


def test_white_space_means_what_it_meant_in_training(bundle: Bundle) -> None:
    """Training tidies it: runs of blanks and tabs are one blank."""
    plain, wild = predictor_from_bundle(bundle).translate(["the cat sat", " the\tcat \t sat\r\n"], beam=1)
    assert wild.source_tokens == plain.source_tokens


def test_lowercase_models_read_lowercase(subwords: SubwordTokenizer) -> None:
    small = predictor_from_bundle(random_bundle(subwords, "recurrent", "bahdanau", lowercase=True))
    loud, quiet = small.translate(["The CAT", "the cat"], beam=1)
    assert loud.source_tokens == quiet.source_tokens
    assert loud.source == "The CAT"
    plain = predictor_from_bundle(random_bundle(subwords, "recurrent", "bahdanau"))
    loud, quiet = plain.translate(["The CAT", "the cat"], beam=1)
    assert loud.source_tokens != quiet.source_tokens


def test_a_search_has_the_limits_that_suit_the_model(subwords: SubwordTokenizer) -> None:
    translator = predictor_from_bundle(random_bundle(subwords, "recurrent", "bahdanau", longest=9, per_token=1.25))
    options = Options(beam=4, nbest=2, length_penalty=0.5, coverage_penalty=0.1)
    assert translator.run.search_config(options) == SearchConfig(4, 0.5, 0.1, 2, 1.25, 9)
    result = translator.translate("the cat", options)
    assert result.source_tokens[-1] == END
    assert len(result.tokens) <= 9


@pytest.mark.parametrize(
    ("decoder", "layers", "heads"), [("bahdanau", 1, 1), ("transformer", 2, 2), ("convolutional", 2, 1), ("cho", 0, 0)]
)
def test_attention_is_captured_by_one_forced_pass(
    subwords: SubwordTokenizer, decoder: str, layers: int, heads: int
) -> None:
    translator = predictor_from_bundle(random_bundle(subwords, "recurrent", decoder))
    texts = ["the cat sat", "a dog", ""]
    plain = translator.translate(texts)
    assert not any(result.attention or result.token_scores or result.alignment for result in plain)
    results = translator.translate(texts, attention=True, scores=True, alignment=True)
    for before, result in zip(plain[:2], results[:2], strict=True):
        assert result.tokens == before.tokens, "asking changes nothing"
        assert result.attention is not None
        assert result.token_scores is not None
        assert result.alignment is not None
        assert result.attention.kinds == (
            ["cross", "decoder"] if decoder == "transformer" else ["cross"] * bool(layers)
        )
        cross = result.attention.weights.get("cross", [])
        assert len(cross) == layers
        for weights in cross:
            assert weights.shape == (heads, len(result.tokens), len(result.source_tokens))
            np.testing.assert_allclose(weights.sum(-1), np.ones((heads, len(result.tokens))), atol=1e-5)
        assert sum(result.token_scores) / len(result.tokens) == pytest.approx(result.score, abs=1e-4)
        assert bool(result.alignment) == bool(layers and result.text)
        for source, target in result.alignment:
            assert 0 <= source < len(result.source.split())
            assert target >= 0
        again = translator.attend(result.source)
        for kind in again.kinds:
            for one, other in zip(again.weights[kind], result.attention.weights[kind], strict=True):
                np.testing.assert_allclose(one, other, atol=1e-5)
    assert results[2].attention is None


@pytest.mark.parametrize("decoder", ["bahdanau", "transformer", "convolutional", "cho"])
@pytest.mark.parametrize("encoder", ["recurrent", "transformer"])
def test_any_pair_can_be_looked_at(subwords: SubwordTokenizer, encoder: str, decoder: str) -> None:
    translator = predictor_from_bundle(random_bundle(subwords, encoder, decoder))
    seen = translator.attend("the cat", "Hund", attribution=True)
    assert seen.source.merge_words().labels == ("the", "cat", "</s>")
    assert seen.target.merge_words().labels == ("Hund", "</s>")
    assert seen.before.labels == ("<s>", *seen.target.labels[:-1])
    wanted = {"encoder": encoder == "transformer", "cross": decoder != "cho", "decoder": decoder == "transformer"}
    assert seen.kinds == [kind for kind in ("cross", "encoder", "decoder") if wanted[kind]]
    assert (seen.alignment_weights is not None) == (decoder != "cho")
    assert seen.attribution["source"].shape == (len(seen.target), len(seen.source))
    assert np.abs(seen.attribution["source"]).max() > 0
    assert not np.triu(seen.attribution["before"], 1).any(), "what comes later explains nothing"


def test_what_cannot_be_looked_at_is_a_sentence(bundle: Bundle) -> None:
    translator = predictor_from_bundle(bundle)
    for source, target, message in (
        ("", None, "the source is empty"),
        ("cat dog " * 30, None, "longer than the 11 subwords"),
        ("cat dog " * 30, "Hund", "the source has"),
        ("cat", "Hund " * 30, "the target has"),
        ("cat", "", "the target has 0"),
        ("\ud800", None, "half a character"),
        ("cat", "\ud800", "half a character"),
    ):
        with pytest.raises(ValueError, match=message):
            translator.attend(source, target)


@pytest.mark.parametrize("decoder", ["learned", "convolutional"])
def test_a_model_with_few_places_says_no_more_than_it_has_places_for(subwords: SubwordTokenizer, decoder: str) -> None:
    places = 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DECODERS, decoder, {**DECODERS[decoder], "max_positions": places})
        bundle = random_bundle(subwords, "recurrent", decoder)
    with torch.no_grad():
        bundle.model.output.bias[END] = -1e4  # never ends by itself
    assert len(predictor_from_bundle(bundle).translate("the cat", beam=2).tokens) <= places


def test_an_option_that_is_none_is_refused(bundle: Bundle) -> None:
    with pytest.raises(ValueError, match="beams: there is no such option; there are search, beam, nbest"):
        predictor_from_bundle(bundle).translate("the cat", beams=3)
    with pytest.raises(ValueError, match=r"max_length_ratio: 0\.0 is not possible"):
        predictor_from_bundle(bundle).translate("the cat", max_length_ratio=0)


@pytest.fixture
def talker(subwords: SubwordTokenizer) -> Bundle:
    """A model that says words, not bytes."""
    bundle = random_bundle(subwords, "recurrent", "bahdanau", longest=40)
    with torch.no_grad():
        bundle.model.output.bias[:] = -100
        for word in ("the", "cat", "dog", "park", "mat", "on", "Hund", "Katze"):
            bundle.model.output.bias[subwords.encode([word])[0]] = 0
        bundle.model.output.bias[END] = -1
    return bundle


def test_required_and_forbidden_words(talker: Bundle) -> None:
    translator = predictor_from_bundle(talker)
    for text in ("the cat", "a dog ran", "the mat"):
        plain = translator.translate(text)
        words = plain.text.split()
        assert len(words) > 1
        new = next(word for word in ("Katze", "dog", "park", "mat") if word not in words)
        asked = translator.translate(text, required=(new,))
        assert new in asked.text.split()
        assert not asked.missing
        for options in ({"beam": 5}, {"beam": 1}, {"temperature": 1.0}, {"beam": 4, "beam_groups": 2}):
            for word in words[:2]:
                said = translator.translate(text, forbidden=(word,), **options).text.split()
                assert word not in said
                phrase = " ".join(words[:2])
                assert phrase not in translator.translate(text, forbidden=(phrase,), **options).text
            begun = translator.translate(text, prefix="the dog", **options)
            assert begun.text.startswith("the dog")


def test_a_glossary_asks_where_the_source_says_so(bundle: Bundle) -> None:
    translator = predictor_from_bundle(bundle)
    terms = {"cat": "Katze", "字": "Hund", "do": "park"}
    texts = ["The Cat sat", "cats", "x字y", "a dog"]
    for text, word in zip(texts, ["Katze", None, "Hund", None], strict=True):
        result = translator.translate(text, glossary=terms)
        if word:
            assert word in result.text.split()
        else:
            assert result.tokens == translator.translate(text).tokens


@pytest.mark.parametrize("decoder", ["bahdanau", "transformer", "convolutional", "cho"])
def test_every_model_says_the_terms_of_a_glossary(subwords: SubwordTokenizer, decoder: str) -> None:
    translator = predictor_from_bundle(random_bundle(subwords, "recurrent", decoder))
    glossary = {"cat": "Katze", "dog": "mat"}
    tokens = {term: translator.run.target_tokens(said) for term, said in glossary.items()}
    for text in ("the cat", "a cat and a cat", "the dog and the cat", "Hund"):
        result = translator.translate(text, glossary=glossary, beam=4, nbest=3)
        assert not result.missing
        for term, wanted in tokens.items():
            output = result.tokens
            said = sum(tuple(output[at : at + len(wanted)]) == wanted for at in range(len(output)))
            assert said >= (term in text.split()), (text, decoder, output)
    assert translator.translate("Hund", glossary=glossary).tokens == translator.translate("Hund").tokens


def test_what_there_is_no_room_for_is_told(subwords: SubwordTokenizer) -> None:
    translator = predictor_from_bundle(random_bundle(subwords, "recurrent", "bahdanau", longest=3))
    result = translator.translate("cat", required=("the dog and the cat",))
    assert result.missing == ["the dog and the cat"]


def test_placeholders_that_a_model_has_never_seen_stay_where_they_were(talker: Bundle) -> None:
    translator = predictor_from_bundle(talker)
    text = "the cat %s sat, {name}: <b>a dog</b> &amp;  "
    result = translator.translate(text)
    words = {part: translator.translate(part.strip()).text for part in ("the cat", "sat, ", "a dog")}
    assert result.text == f"{words['the cat']} %s {words['sat, ']} {{name}}: <b>{words['a dog']}</b> &amp;  "
    for each in ("%s", "{name}", "<b>", "</b>", "&amp;"):
        assert result.text.count(each) == 1
    assert result.text.startswith(words["the cat"] + " %s ")
    assert translator.translate("%s: {0}!").text == "%s: {0}!", "nothing to translate"
    assert translator.translate("%s (5)").text == "%s (5)"


@pytest.fixture
def keeper() -> Bundle:
    """A model whose vocabulary has symbols for %s and the like."""
    lines = [*LINES, *(f"the {SYMBOLS[0]} sat on {SYMBOLS[1]} {SYMBOLS[2]}" for _ in range(3))]
    subwords = train_tokenizer(lines, SubwordSettings(), 330, SYMBOLS)
    return random_bundle(
        subwords, "recurrent", "bahdanau", longest=40, placeholders={"printf": "symbol", "tag": "symbol"}
    )


@pytest.mark.parametrize("options", [{}, {"beam": 1}, {"temperature": 1.0}, {"beam": 4, "beam_groups": 2, "nbest": 4}])
def test_placeholders_come_out_exactly_as_often_as_they_went_in(keeper: Bundle, options: dict) -> None:
    translator = predictor_from_bundle(keeper)
    texts = ["the %s sat", "%d cats and %d dogs <b>in</b> the park", "%s", "no placeholder at all", "{name} and %s"]
    for text, result in zip(texts, translator.translate(texts, **options), strict=True):
        for said in [result.text, *(other.text for other in result.alternatives)]:
            for each in ("%s", "%d", "<b>", "</b>", "{name}"):
                assert said.count(each) == text.count(each)
            assert not set(said) & set(SYMBOLS)
        assert not result.missing


def test_where_there_is_no_room_placeholders_are_kept_all_the_same(keeper: Bundle) -> None:
    translator = predictor_from_bundle(keeper)
    text = "the cat %s sat %d on"
    result = translator.translate(text, max_length_ratio=0.2)
    assert result.text.count("%s") == result.text.count("%d") == 1
    assert not result.missing


def test_what_looks_like_a_symbol_is_kept(keeper: Bundle) -> None:
    text = f"the {SYMBOLS[2]} cat"
    assert predictor_from_bundle(keeper).translate(text).text.count(SYMBOLS[2]) == 1


def test_too_many_placeholders_are_told(keeper: Bundle) -> None:
    good, bad = predictor_from_bundle(keeper).translate(["the %s", " ".join(f"%({n})s" for n in range(30))])
    assert bad.error == "it has over 24 different placeholders"
    assert good.text


def test_lines_of_a_text_stay_lines(bundle: Bundle) -> None:
    translator = predictor_from_bundle(bundle)
    one, two, nothing, around = translator.translate(["the cat", "the cat\n\na dog", "\n", "\nthe cat\n"], beam=1)
    assert two.text == f"{one.text}\n\n{translator.translate('a dog', beam=1).text}"
    assert nothing.text == ""
    assert around.text == one.text


def test_what_is_no_word_is_copied(bundle: Bundle) -> None:
    translator = predictor_from_bundle(bundle)
    key = "k3Y/+=" * 50
    alone, among = translator.translate([key, f"the cat {key} a dog"], beam=1)
    assert alone.text == key
    assert among.text == " ".join(
        [translator.translate("the cat", beam=1).text, key, translator.translate("a dog", beam=1).text]
    )


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("a dog runs . two men sit .", "a dog runs ."),
        ("A dog runs . two men sit .", "A dog runs ."),
        ("i like dogs. they run.", "i like dogs."),
        ("what? no! yes.", "what?"),
        ("use a tool, e.g. this one.", None),
        ("The firm said approx. five dogs.", None),
        ("Ah ! dit-il. Puis non.", "Ah ! dit-il."),
    ],
)
def test_sentences_in_small_letters(text: str, first: str | None) -> None:
    parts = split_sentences(text)
    assert "".join(part + blanks for part, blanks in parts) == text
    assert parts[0][0] == (first or text)


@pytest.mark.parametrize(
    ("source", "said", "whole"),
    [("a ", "ein .", "ein "), ("dog .", "hund .", "hund ."), ("dog!", "Hund.", "Hund."), ("dog", "Hund!", "Hund!")],
)
def test_a_part_ends_as_its_source_does(source: str, said: str, whole: str) -> None:
    text = ChunkedText.from_chunks(source, [(source, False)])
    assert text.join([Result(source, said, 0.0, [], [])]).text == whole
