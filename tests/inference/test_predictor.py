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
from regard.inference.inputs.chunked_text import ChunkedText
from regard.inference.inputs.text import TextInputs
from regard.inference.options import Options
from regard.inference.pipelines import sequence as sequence_pipeline
from regard.inference.results import Result
from regard.inference.search.batch_search import search
from regard.inference.search_config import SearchConfig
from regard.loading import predictor_from_bundle
from regard.runs.bundle import Bundle
from regard.special_tokens import EOS
from tests.bundles import LINES, random_bundle
from tests.models.variants import DECODERS

TEXTS = ["the cat", "a dog ran in the park", "", "cat", "the dog and the cat", "Hund", "ünknöwn 字"]


def test_results_are_in_the_order_of_the_inputs(bundle: Bundle) -> None:
    translator = predictor_from_bundle(bundle)
    options = Options(beam=3, nbest=3)
    results = translator.translate(TEXTS, options)
    assert [result.source for result in results] == TEXTS
    assert any(result.chunk_count > 1 for result in results)
    for text, result in zip(TEXTS, results, strict=True):
        if not text:
            assert (result.text, result.tokens, result.error) == ("", [], "")
            continue
        tokens = [*bundle.source_processor.encode([text])[0], EOS]
        assert (result.chunk_count > 1) == (len(tokens) > 12)
        if result.chunk_count > 1:
            continue
        assert result.source_tokens == tokens
        source = torch.tensor([tokens])
        (found,) = search(bundle.model, source, source > 0, translator.run.search_config(options))
        assert result.tokens == found[0].tokens
        assert result.score == pytest.approx(found[0].score, abs=1e-4)
        outputs = bundle.target_vocabulary.decode([h.tokens for h in found])
        assert [result.text, *(other.text for other in result.alternatives)] == outputs
        assert [other.tokens for other in result.alternatives] == [h.tokens for h in found[1:]]


def test_long_texts_are_translated_in_chunks(bundle: Bundle) -> None:
    translator = predictor_from_bundle(bundle)
    text = "  " + "cat dog, the park and Hund " * 30 + "\t"
    result = translator.translate(text, beam=1)
    chunks = [chunk for chunk, _ in split_to_fit(text, TextInputs(translator.run).within_max_length)]
    assert result.chunk_count == sum(bool(chunk.strip()) for chunk in chunks) > 10
    assert all(len(bundle.source_processor.encode([chunk])[0]) < 12 for chunk in chunks)
    alone = [translator.translate(chunk.strip(), beam=1).text for chunk in chunks if chunk.strip()]
    assert result.text.split() == " ".join(alone).split(), "nothing is left out"


@pytest.mark.parametrize("not_a_text", [None, 5, b"cat", [None], ["cat", 5]])
def test_inputs_that_are_not_texts_are_rejected(bundle: Bundle, not_a_text: Any) -> None:
    with pytest.raises(ValueError, match="is not a text; give a text, or a list of texts"):
        predictor_from_bundle(bundle).translate(not_a_text)


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
        ({"required": ["a"], "temperature": 0.5}, "required: this needs beam search; leave out temperature"),
        ({"required": ["a"], "search": "greedy"}, "required: this needs beam search; leave out search"),
        ({"diversity_penalty": 1.0, "beam": 4}, "diversity_penalty: this is for diverse beam search; set beam_groups"),
        ({"required": ["a"], "forbidden": ["a"]}, "'a' is both required and forbidden"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options.from_dict(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": "greedy", "beam": 5}, "beam: greedy search does not use it; leave it out, or leave out search"),
        ({"search": "greedy", "nbest": 2}, "nbest: greedy search does not use it"),
        ({"beam": 5, "temperature": 1.0, "top_k": 3}, "beam: .*leave it out, or leave out temperature and top_k"),
        ({"seed": 1}, "seed: beam search does not use it; leave it out, or set temperature, top_k or top_p to sample"),
        ({"search": "beam", "top_p": 0.5}, "top_p: beam search does not use it; .* set search to sampling"),
    ],
)
def test_options_that_the_search_does_not_use_are_rejected(
    bundle: Bundle, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        predictor_from_bundle(bundle).translate("a dog", **options)


def test_an_option_that_is_changed_to_its_default_is_no_longer_set() -> None:
    assert Options(nbest=3, beam=4).with_changes(nbest=1).model_fields_set == {"beam"}


def test_one_text_a_list_and_a_stream(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = predictor_from_bundle(bundle)
    together = translator.translate(TEXTS, beam=2)
    alone = translator.translate(TEXTS[1], beam=2)
    assert isinstance(alone, Result)
    assert alone.tokens == together[1].tokens
    monkeypatch.setattr(predictors, "STREAM_BATCH", 3)
    consumed: list[str] = []

    def texts() -> Iterator[str]:
        for text in TEXTS:
            consumed.append(text)
            yield text

    stream = translator.translate(texts(), beam=2)
    assert next(stream).tokens == together[0].tokens
    assert consumed == TEXTS[:3], "no more is read ahead than one batch of the stream"
    assert [result.tokens for result in stream] == [result.tokens for result in together[1:]]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.sampled_from(TEXTS), max_size=9),
    batch_tokens=st.integers(1, 60),
    max_batch=st.integers(1, 5),
)
def test_outputs_do_not_depend_on_the_batch_size(
    bundle: Bundle, texts: list[str], batch_tokens: int, max_batch: int
) -> None:
    translator = predictor_from_bundle(bundle)
    options = Options(beam=2)
    alone = {text: translator.translate(text, options) for text in set(texts)}
    reported: list[int] = []
    translator.run.engine.batch_tokens = batch_tokens
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence_pipeline, "MAX_BATCH", max_batch)
        results = translator.results(texts, options, on_done=reported.append)
    assert [result.text for result in results] == [alone[text].text for text in texts]
    assert sum(reported) == len(texts)
    assert reported[0] == texts.count(""), "empty texts are done first"
    chunked = sum(result.chunk_count > 1 for result in results)
    assert all(0 < count <= max(max_batch, chunked) for count in reported[1:])


@given(text=st.text(max_size=30))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_text_gets_an_output(bundle: Bundle, text: str) -> None:
    result = predictor_from_bundle(bundle).translate(text, beam=1)
    assert result.source == text
    assert result.tokens[-1:] == ([EOS] if result.source_tokens else [])
    assert not result.error


def test_an_invalid_text_does_not_affect_the_others(bundle: Bundle) -> None:
    translator = predictor_from_bundle(bundle)
    valid, invalid, valid_too = translator.translate(["the cat", "half \ud83d a smile", "a dog"], beam=2)
    assert invalid.error == "it is not UTF-8, or has half a character (a lone surrogate)"
    assert (invalid.text, invalid.tokens) == ("", [])
    assert [valid.tokens, valid_too.tokens] == [r.tokens for r in translator.translate(["the cat", "a dog"], beam=2)]


def test_whitespace_is_normalized_as_in_training(bundle: Bundle) -> None:
    """Training normalizes it: runs of blanks and tabs are one blank."""
    plain, with_tabs = predictor_from_bundle(bundle).translate(["the cat sat", " the\tcat \t sat\r\n"], beam=1)
    assert with_tabs.source_tokens == plain.source_tokens


def test_lowercase_models_lowercase_their_inputs(subwords: SubwordTokenizer) -> None:
    lowercase_model = predictor_from_bundle(random_bundle(subwords, "recurrent", "bahdanau", lowercase=True))
    uppercase, lowercase = lowercase_model.translate(["The CAT", "the cat"], beam=1)
    assert uppercase.source_tokens == lowercase.source_tokens
    assert uppercase.source == "The CAT"
    plain = predictor_from_bundle(random_bundle(subwords, "recurrent", "bahdanau"))
    uppercase, lowercase = plain.translate(["The CAT", "the cat"], beam=1)
    assert uppercase.source_tokens != lowercase.source_tokens


def test_a_search_has_the_limits_that_suit_the_model(subwords: SubwordTokenizer) -> None:
    translator = predictor_from_bundle(
        random_bundle(subwords, "recurrent", "bahdanau", max_tokens=9, tokens_per_source_token=1.25)
    )
    options = Options(beam=4, nbest=2, length_penalty=0.5, coverage_penalty=0.1)
    assert translator.run.search_config(options) == SearchConfig(4, 0.5, 0.1, 2, 1.25, 9)
    result = translator.translate("the cat", options)
    assert result.source_tokens[-1] == EOS
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
        assert result.tokens == before.tokens, "capturing does not affect the output"
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
        separate = translator.attend(result.source)
        for kind in separate.kinds:
            for actual, expected in zip(separate.weights[kind], result.attention.weights[kind], strict=True):
                np.testing.assert_allclose(actual, expected, atol=1e-5)
    assert results[2].attention is None


@pytest.mark.parametrize("decoder", ["bahdanau", "transformer", "convolutional", "cho"])
@pytest.mark.parametrize("encoder", ["recurrent", "transformer"])
def test_attention_of_any_pair_can_be_captured(subwords: SubwordTokenizer, encoder: str, decoder: str) -> None:
    translator = predictor_from_bundle(random_bundle(subwords, encoder, decoder))
    captured = translator.attend("the cat", "Hund", attribution=True)
    assert captured.source.merge_words().labels == ("the", "cat", "</s>")
    assert captured.target.merge_words().labels == ("Hund", "</s>")
    assert captured.decoder_input.labels == ("<s>", *captured.target.labels[:-1])
    expected_kinds = {
        "encoder": encoder == "transformer",
        "cross": decoder != "cho",
        "decoder": decoder == "transformer",
    }
    assert captured.kinds == [kind for kind in ("cross", "encoder", "decoder") if expected_kinds[kind]]
    assert (captured.alignment_weights is not None) == (decoder != "cho")
    assert captured.attribution["source"].shape == (len(captured.target), len(captured.source))
    assert np.abs(captured.attribution["source"]).max() > 0
    assert not np.triu(captured.attribution["decoder_input"], 1).any(), "later tokens get no attribution"


def test_attend_rejects_invalid_pairs(bundle: Bundle) -> None:
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
def test_outputs_are_no_longer_than_the_position_embeddings(subwords: SubwordTokenizer, decoder: str) -> None:
    max_positions = 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DECODERS, decoder, {**DECODERS[decoder], "max_positions": max_positions})
        bundle = random_bundle(subwords, "recurrent", decoder)
    with torch.no_grad():
        bundle.model.output.bias[EOS] = -1e4  # never ends by itself
    assert len(predictor_from_bundle(bundle).translate("the cat", beam=2).tokens) <= max_positions


def test_unknown_options_are_rejected(bundle: Bundle) -> None:
    with pytest.raises(ValueError, match="beams: there is no such option; there are search, beam, nbest"):
        predictor_from_bundle(bundle).translate("the cat", beams=3)
    with pytest.raises(ValueError, match=r"max_length_ratio: 0\.0 is not possible"):
        predictor_from_bundle(bundle).translate("the cat", max_length_ratio=0)


@pytest.fixture
def word_model(subwords: SubwordTokenizer) -> Bundle:
    """A model that generates words, not bytes."""
    bundle = random_bundle(subwords, "recurrent", "bahdanau", max_tokens=40)
    with torch.no_grad():
        bundle.model.output.bias[:] = -100
        for word in ("the", "cat", "dog", "park", "mat", "on", "Hund", "Katze"):
            bundle.model.output.bias[subwords.encode([word])[0]] = 0
        bundle.model.output.bias[EOS] = -1
    return bundle


def test_required_and_forbidden_words(word_model: Bundle) -> None:
    translator = predictor_from_bundle(word_model)
    for text in ("the cat", "a dog ran", "the mat"):
        plain = translator.translate(text)
        words = plain.text.split()
        assert len(words) > 1
        new_word = next(word for word in ("Katze", "dog", "park", "mat") if word not in words)
        constrained = translator.translate(text, required=(new_word,))
        assert new_word in constrained.text.split()
        assert not constrained.missing
        for options in ({"beam": 5}, {"beam": 1}, {"temperature": 1.0}, {"beam": 4, "beam_groups": 2}):
            for word in words[:2]:
                output = translator.translate(text, forbidden=(word,), **options).text.split()
                assert word not in output
                phrase = " ".join(words[:2])
                assert phrase not in translator.translate(text, forbidden=(phrase,), **options).text
            prefixed = translator.translate(text, prefix="the dog", **options)
            assert prefixed.text.startswith("the dog")


def test_glossary_terms_are_required_only_where_the_source_contains_them(bundle: Bundle) -> None:
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
def test_every_model_generates_glossary_terms(subwords: SubwordTokenizer, decoder: str) -> None:
    translator = predictor_from_bundle(random_bundle(subwords, "recurrent", decoder))
    glossary = {"cat": "Katze", "dog": "mat"}
    tokens = {term: translator.run.target_tokens(translation) for term, translation in glossary.items()}
    for text in ("the cat", "a cat and a cat", "the dog and the cat", "Hund"):
        result = translator.translate(text, glossary=glossary, beam=4, nbest=3)
        assert not result.missing
        for term, expected_tokens in tokens.items():
            found = result.tokens
            count = sum(tuple(found[at : at + len(expected_tokens)]) == expected_tokens for at in range(len(found)))
            assert count >= (term in text.split()), (text, decoder, found)
    assert translator.translate("Hund", glossary=glossary).tokens == translator.translate("Hund").tokens


def test_required_phrases_that_do_not_fit_are_reported_as_missing(subwords: SubwordTokenizer) -> None:
    translator = predictor_from_bundle(random_bundle(subwords, "recurrent", "bahdanau", max_tokens=3))
    result = translator.translate("cat", required=("the dog and the cat",))
    assert result.missing == ["the dog and the cat"]


def test_unknown_placeholders_stay_in_place(word_model: Bundle) -> None:
    translator = predictor_from_bundle(word_model)
    text = "the cat %s sat, {name}: <b>a dog</b> &amp;  "
    result = translator.translate(text)
    outputs = {chunk: translator.translate(chunk.strip()).text for chunk in ("the cat", "sat, ", "a dog")}
    assert result.text == f"{outputs['the cat']} %s {outputs['sat, ']} {{name}}: <b>{outputs['a dog']}</b> &amp;  "
    for each in ("%s", "{name}", "<b>", "</b>", "&amp;"):
        assert result.text.count(each) == 1
    assert result.text.startswith(outputs["the cat"] + " %s ")
    assert translator.translate("%s: {0}!").text == "%s: {0}!", "nothing to translate"
    assert translator.translate("%s (5)").text == "%s (5)"


@pytest.fixture
def placeholder_model() -> Bundle:
    """A model whose vocabulary has symbols for %s and the like."""
    lines = [*LINES, *(f"the {SYMBOLS[0]} sat on {SYMBOLS[1]} {SYMBOLS[2]}" for _ in range(3))]
    subwords = train_tokenizer(lines, SubwordSettings(), 330, SYMBOLS)
    return random_bundle(
        subwords, "recurrent", "bahdanau", max_tokens=40, placeholders={"printf": "symbol", "tag": "symbol"}
    )


@pytest.mark.parametrize("options", [{}, {"beam": 1}, {"temperature": 1.0}, {"beam": 4, "beam_groups": 2, "nbest": 4}])
def test_outputs_contain_every_placeholder_as_often_as_the_source(placeholder_model: Bundle, options: dict) -> None:
    translator = predictor_from_bundle(placeholder_model)
    texts = ["the %s sat", "%d cats and %d dogs <b>in</b> the park", "%s", "no placeholder at all", "{name} and %s"]
    for text, result in zip(texts, translator.translate(texts, **options), strict=True):
        for output in [result.text, *(other.text for other in result.alternatives)]:
            for each in ("%s", "%d", "<b>", "</b>", "{name}"):
                assert output.count(each) == text.count(each)
            assert not set(output) & set(SYMBOLS)
        assert not result.missing


def test_placeholders_are_preserved_in_short_outputs(placeholder_model: Bundle) -> None:
    translator = predictor_from_bundle(placeholder_model)
    text = "the cat %s sat %d on"
    result = translator.translate(text, max_length_ratio=0.2)
    assert result.text.count("%s") == result.text.count("%d") == 1
    assert not result.missing


def test_symbols_in_the_source_text_are_preserved(placeholder_model: Bundle) -> None:
    text = f"the {SYMBOLS[2]} cat"
    assert predictor_from_bundle(placeholder_model).translate(text).text.count(SYMBOLS[2]) == 1


def test_too_many_placeholders_are_reported(placeholder_model: Bundle) -> None:
    valid, invalid = predictor_from_bundle(placeholder_model).translate(
        ["the %s", " ".join(f"%({n})s" for n in range(30))]
    )
    assert invalid.error == "it has over 24 different placeholders"
    assert valid.text


def test_line_breaks_are_preserved(bundle: Bundle) -> None:
    translator = predictor_from_bundle(bundle)
    single, two_lines, empty, surrounded = translator.translate(
        ["the cat", "the cat\n\na dog", "\n", "\nthe cat\n"], beam=1
    )
    assert two_lines.text == f"{single.text}\n\n{translator.translate('a dog', beam=1).text}"
    assert empty.text == ""
    assert surrounded.text == single.text


def test_long_non_words_are_copied(bundle: Bundle) -> None:
    translator = predictor_from_bundle(bundle)
    key = "k3Y/+=" * 50
    key_alone, key_in_text = translator.translate([key, f"the cat {key} a dog"], beam=1)
    assert key_alone.text == key
    assert key_in_text.text == " ".join(
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
def test_sentences_are_split_without_capital_letters(text: str, first: str | None) -> None:
    sentences = split_sentences(text)
    assert "".join(sentence + blanks for sentence, blanks in sentences) == text
    assert sentences[0][0] == (first or text)


@pytest.mark.parametrize(
    ("source", "output", "joined"),
    [("a ", "ein .", "ein "), ("dog .", "hund .", "hund ."), ("dog!", "Hund.", "Hund."), ("dog", "Hund!", "Hund!")],
)
def test_full_stops_that_the_source_lacks_are_removed(source: str, output: str, joined: str) -> None:
    text = ChunkedText.from_chunks(source, [(source, False)])
    assert text.join([Result(source, output, 0.0, [], [])]).text == joined
