"""Every family: an imported model has the states, logits, predictions and tokens of transformers."""

from typing import Any

import pytest
import torch

from regard.data.batch import pad_sequences
from regard.inference.pipelines.span_qa import SpanDecoder
from regard.inference.pipelines.token_level import token_logits
from regard.inference.search_config import SearchConfig
from regard.loading import load
from regard.special_tokens import BOS, EOS, MASK, PAD
from tests.interop.huggingface_models import HARD_TEXTS, LINES

pytest.importorskip("transformers")

ENCODERS = [
    "bert BertForMaskedLM",
    "bert BertForPreTraining",
    "bert BertModel",
    "bert BertForSequenceClassification",
    "roberta RobertaForMaskedLM",
    "roberta RobertaModel",
    "roberta RobertaForSequenceClassification",
    "distilbert DistilBertForMaskedLM",
    "distilbert DistilBertModel",
    "distilbert DistilBertForSequenceClassification",
    "bert BertForTokenClassification",
    "roberta RobertaForTokenClassification",
    "distilbert DistilBertForTokenClassification",
    "bert BertForQuestionAnswering",
    "roberta RobertaForQuestionAnswering",
    "distilbert DistilBertForQuestionAnswering",
]


def sequences(bundle: Any) -> torch.Tensor:
    """regard's tokens of texts of several lengths, padded."""
    tokens = bundle.source_processor.encode(LINES)
    return pad_sequences([[BOS, *each[:40], EOS] for each in tokens])


@pytest.mark.parametrize("kind", ENCODERS)
def test_encoders_have_the_same_states(imported: Any, kind: str) -> None:
    theirs, bundle, _, _ = imported(kind)
    ours = sequences(bundle)
    mask = ours != PAD
    entries = torch.from_numpy(bundle.source_processor.original_ids)
    with torch.no_grad():
        expected = theirs(input_ids=entries[ours], attention_mask=mask.long(), output_hidden_states=True)
        memory = bundle.model.encode(ours, mask)
    torch.testing.assert_close(memory.states[mask], expected.hidden_states[-1][mask], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [each for each in ENCODERS if "MaskedLM" in each or "PreTraining" in each])
def test_masked_lms_have_the_same_logits(imported: Any, kind: str) -> None:
    theirs, bundle, _, _ = imported(kind)
    ours = sequences(bundle)
    mask = ours != PAD
    ours[:, 3] = MASK
    entries = torch.from_numpy(bundle.source_processor.original_ids)
    with torch.no_grad():
        expected = theirs(input_ids=entries[ours], attention_mask=mask.long())
        memory = bundle.model.encode(ours, mask)
        logits = bundle.model.logits(bundle.model.decoder(ours, memory).features)
    theirs_logits = expected.logits if "MaskedLM" in kind else expected.prediction_logits
    torch.testing.assert_close(logits[mask], theirs_logits[..., entries][mask], rtol=1e-4, atol=1e-4)
    if "PreTraining" in kind:  # class 0 in transformers: the second segment follows the first
        found = bundle.model.decoder.next_sentence_logits(memory.states[:, 0])
        torch.testing.assert_close(found, expected.seq_relationship_logits.flip(1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [each for each in ENCODERS if "SequenceClassification" in each])
def test_sequence_classifiers_have_the_same_logits(imported: Any, kind: str) -> None:
    theirs, bundle, _, _ = imported(kind)
    ours = sequences(bundle)
    mask = ours != PAD
    entries = torch.from_numpy(bundle.source_processor.original_ids)
    with torch.no_grad():
        expected = theirs(input_ids=entries[ours], attention_mask=mask.long()).logits
        found = bundle.model.logits(bundle.model(ours, mask, ours[:, :1]).features)[:, 0, EOS + 1 :]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert bundle.target_vocabulary.labels == ("bad", "fair", "good")


@pytest.mark.parametrize("kind", [each for each in ENCODERS if "TokenClassification" in each])
def test_token_classifiers_predict_the_same_tags(imported: Any, kind: str) -> None:
    from transformers import AutoTokenizer

    theirs, bundle, folder, run = imported(kind)
    assert bundle.target_vocabulary.labels == ("bad", "fair", "good")
    split = {"add_prefix_space": True} if "roberta" in kind else {}
    tokenizer = AutoTokenizer.from_pretrained(folder, **split)
    tagger = load(run)
    text = "a dog runs in the park 13 again"
    batch = tokenizer(text.split(), is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        expected = theirs(**batch).logits[0].argmax(-1)
    word_ids = batch.word_ids(0)
    first_positions = [word_ids.index(number) for number in range(len(text.split()))]
    tags = [("bad", "fair", "good")[int(expected[position])] for position in first_positions]
    assert [tag for _, tag in tagger.tag(text)] == tags


@pytest.mark.parametrize("kind", [each for each in ENCODERS if "QuestionAnswering" in each])
def test_span_classifiers_have_the_same_logits(imported: Any, kind: str) -> None:
    from transformers import AutoTokenizer

    theirs, bundle, folder, run = imported(kind)
    answerer = load(run)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    passage, question = "A dog runs in the park, and two cats sleep.", "the quick fox?"
    batch = tokenizer(question, passage, return_tensors="pt", return_offsets_mapping=True)
    offsets = batch.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        expected = theirs(**batch)
    decoder = SpanDecoder(answerer.run)
    encoded = decoder.encode(f"{passage}\t{question}")
    assert bundle.source_processor.to_original_ids(encoded.rows[0]) == batch["input_ids"][0].tolist()
    (logits,) = token_logits(answerer.run, encoded.rows)
    boundary_logits = torch.stack([expected.start_logits[0], expected.end_logits[0]], 1)
    torch.testing.assert_close(logits[:, EOS + 1 :], boundary_logits, rtol=1e-4, atol=1e-4)
    first = encoded.context[0][0].passage_start
    assert [list(each) for each in encoded.context[0][0].offsets] == offsets[first:-1]


def test_two_segments_have_the_same_states(imported: Any) -> None:
    theirs, bundle, _, _ = imported("bert BertForMaskedLM")
    first, second = bundle.source_processor.encode(LINES[:2])
    ours = torch.tensor([[BOS, *first, EOS, *second, EOS]])
    entries = torch.from_numpy(bundle.source_processor.original_ids)
    types = torch.tensor([[0] * (len(first) + 2) + [1] * (len(second) + 1)])
    with torch.no_grad():
        expected = theirs.bert(input_ids=entries[ours], token_type_ids=types).last_hidden_state
        found = bundle.model.encode(ours, ours != PAD).states
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["gpt2 GPT2LMHeadModel", "gpt_neox GPTNeoXForCausalLM"])
def test_decoders_have_the_same_logits(imported: Any, kind: str) -> None:
    theirs, bundle, _, _ = imported(kind)
    side = bundle.target_vocabulary
    rows = [side.encode([line])[0][:12] for line in LINES]
    entries = torch.from_numpy(side.original_ids)
    with torch.no_grad():
        for row in rows:
            expected = theirs(input_ids=entries[torch.tensor([row])]).logits[..., entries]
            nothing = torch.zeros(1, 0, dtype=torch.long)
            found = bundle.model.logits(bundle.model(nothing, nothing.bool(), torch.tensor([row])).features)
            present = [token for token in range(len(side)) if token not in side.missing]
            torch.testing.assert_close(found[..., present], expected[..., present], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["marian MarianMTModel", "pegasus PegasusForConditionalGeneration"])
def test_encoder_decoders_have_the_same_logits(imported: Any, kind: str) -> None:
    theirs, bundle, _, _ = imported(kind)
    ours = pad_sequences([[*each[:40], EOS] for each in bundle.source_processor.encode(LINES)])
    mask = ours != PAD
    before = pad_sequences([[BOS, *each[:20]] for each in bundle.target_vocabulary.encode(LINES[::-1])])
    entries = torch.from_numpy(bundle.source_processor.original_ids)
    with torch.no_grad():
        expected = theirs(input_ids=entries[ours], attention_mask=mask.long(), decoder_input_ids=entries[before])
        found = bundle.model.logits(bundle.model(ours, mask, before).features)
    is_token = before != PAD
    torch.testing.assert_close(found[is_token], expected.logits[..., entries][is_token], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["bert BertModel", "roberta RobertaModel", "gpt2 GPT2LMHeadModel"])
def test_texts_are_tokenized_alike(imported: Any, kind: str) -> None:
    import transformers

    _, bundle, folder, _ = imported(kind)
    side = bundle.target_vocabulary
    family = {"bert": "BertTokenizerFast", "roberta": "RobertaTokenizerFast", "gpt2": "GPT2TokenizerFast"}
    tokenizer = getattr(transformers, family[kind.split(maxsplit=1)[0]]).from_pretrained(folder)
    for text in HARD_TEXTS:
        expected = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert side.to_original_ids(side.encode([text])[0]) == expected, text


def test_marian_tokenizes_source_and_target_alike(imported: Any) -> None:
    import transformers

    _, bundle, folder, _ = imported("marian MarianMTModel")
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    for text in HARD_TEXTS:
        expected = tokenizer(text)["input_ids"][:-1]
        source = bundle.source_processor
        assert source.to_original_ids(source.encode([text])[0]) == expected, text
        expected = tokenizer(text_target=text)["input_ids"][:-1]
        target = bundle.target_vocabulary
        assert target.to_original_ids(target.encode([text])[0]) == expected, text


def predicted_tokens(side: Any, row: Any, prefix_length: int) -> list[int]:
    """The generated tokens up to the end of sequence, as regard's tokens."""
    tokens = [int(each) for each in side._token_ids[row[prefix_length:].numpy()]]
    return tokens[: tokens.index(EOS) + 1] if EOS in tokens else tokens


@pytest.mark.parametrize("kind", ["gpt2 GPT2LMHeadModel", "gpt_neox GPTNeoXForCausalLM"])
@pytest.mark.parametrize("text", ["A dog runs", "Two  cats\nsleep", "狗在公园里跑"])
def test_decoders_continue_a_text_alike(imported: Any, text: str, kind: str) -> None:
    theirs, bundle, _, run = imported(kind)
    model = load(run)
    side = bundle.target_vocabulary
    prefix = side.encode([text])[0]
    prompt = torch.tensor([side.to_original_ids(prefix)])
    for beam in (1, 4):
        row = theirs.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=20, do_sample=False, num_beams=beam,
            pad_token_id=0, length_penalty=0.0,
        )[0]  # fmt: skip
        found = model.translate(text, beam=beam, max_tokens=20, length_penalty=0.0)
        expected = predicted_tokens(side, row, len(prefix))[
            : 20 if beam == 1 else 19
        ]  # the length limit ends a beam differently there
        assert found.tokens[len(prefix) :][: len(expected)] == expected
        assert found.text.startswith(text)


def test_gpt2_continues_an_empty_text_alike(imported: Any) -> None:
    theirs, bundle, _, run = imported("gpt2 GPT2LMHeadModel")
    row = theirs.generate(torch.tensor([[0]]), max_new_tokens=8, do_sample=False, pad_token_id=0)[0]
    found = load(run).translate("", beam=1, max_tokens=8)
    expected = predicted_tokens(bundle.target_vocabulary, row, 1)
    assert found.tokens[: len(expected)] == expected


@pytest.mark.parametrize("kind", ["marian MarianMTModel", "pegasus PegasusForConditionalGeneration"])
def test_encoder_decoders_translate_alike(imported: Any, kind: str) -> None:
    theirs, bundle, _, run = imported(kind)
    side = bundle.target_vocabulary
    sources = [[*each[:30], EOS] for each in bundle.source_processor.encode(LINES)]
    ours = pad_sequences(sources)
    entries = torch.from_numpy(side.original_ids)
    engine = load(run, engine="torch").run.engine
    for beam in (1, 4):
        rows = theirs.generate(
            entries[ours], attention_mask=(ours != PAD).long(), max_new_tokens=60, num_beams=beam, length_penalty=1.0,
        )  # fmt: skip
        config = SearchConfig(beam=beam, length_penalty=1.0, max_length=60, tokens_per_source_token=100.0)
        ended = 0
        for row, found in zip(rows, engine.search(sources, config), strict=True):
            expected = predicted_tokens(side, row, 1)
            if len(expected) < 60:  # in transformers, an end that the limit forces does not change the score
                assert found[0].tokens == expected
                ended += 1
            elif beam == 1:
                assert found[0].tokens[:59] == expected[:59]
        assert ended >= 3 or "pegasus" in kind  # its random weights never end a text


@pytest.mark.parametrize("engine", ["native", "ctranslate2"])
def test_marian_translates_alike_in_every_engine(imported: Any, engine: str) -> None:
    run = imported("marian MarianMTModel").run
    expected = [each.text for each in load(run, engine="torch").translate(LINES, beam=4)]
    found = load(run, engine=engine, precision="float32").translate(LINES, beam=4)
    assert [each.text for each in found] == expected
