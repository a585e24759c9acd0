"""Language models: prompts and their continuations."""

from typing import Any

import pytest
import torch

from regard.data.media.none import EmptyProcessor
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.evaluation.perplexity import compute_perplexity
from regard.inference.predictor import Predictor
from regard.loading import predictor_from_bundle
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle
from regard.runs.folder import RunDescription
from regard.special_tokens import BOS, EOS, PAD


@pytest.fixture(scope="module")
def model(subwords: SubwordTokenizer) -> Predictor:
    part = {"kind": "transformer", "width": 16, "heads": 2, "feedforward": 20, "layers": 2, "position": "rotary"}
    settings = ModelSettings.parse(
        {"source": {"kind": "none"}, "encoder": {"kind": "none"}, "decoder": part, "tie": "target"}
    )
    torch.manual_seed(1)
    network = Seq2Seq(settings, source_vocabulary_size=0, target_vocabulary_size=len(subwords))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(0, 0.3)
    description = RunDescription.model_validate({"max_tokens": 40, "model": settings, "tokens_per_source_token": 0.0})
    return predictor_from_bundle(Bundle(description, network.eval(), EmptyProcessor(), subwords))


def reference_greedy(model: Predictor, text: str, count: int) -> list[int]:
    """Greedy search, with one full pass for each token."""
    tokens = list(model.run.target_tokens(text))
    network = model.run.bundle.model
    for _ in range(count):
        source, mask = torch.zeros(1, 0, dtype=torch.long), torch.ones(1, 0, dtype=torch.bool)
        with torch.no_grad():
            logits = network.logits(network(source, mask, torch.tensor([[BOS, *tokens]])).features[0, -1])
        logits[[PAD, BOS]] = -torch.inf
        tokens.append(int(logits.argmax()))
        if tokens[-1] == EOS:
            break
    return tokens


@pytest.mark.parametrize("text", ["", "the cat", "a dog ran in"])
def test_greedy_search_takes_the_most_likely_token_at_each_step(model: Predictor, text: str) -> None:
    expected = reference_greedy(model, text, 6)
    found = model.translate(text, beam=1, max_tokens=6).tokens
    assert found[: len(expected)] == expected
    assert found[-1] == EOS
    assert len(found) <= len(model.run.target_tokens(text)) + 7


def test_streamed_text_equals_the_result(model: Predictor) -> None:
    for options in ({"beam": 1}, {"temperature": 1.2, "seed": 5}, {"top_k": 4}):
        pieces: list[str] = []
        result = model.stream("the cat", pieces.append, max_tokens=12, **options)
        assert "".join(pieces) == result.text
        assert result.text.startswith("the cat")
        assert result.text == model.translate("the cat", max_tokens=12, **options).text
    with pytest.raises(ValueError, match=r"sample, or use beam=1"):
        model.stream("the cat", pieces.append, beam=3)


def test_a_language_model_samples_unless_a_search_is_chosen(model: Predictor) -> None:
    pieces: list[str] = []
    sampled = model.translate("the cat", temperature=1.0, max_tokens=12)
    assert model.generate("the cat", max_tokens=12).text == sampled.text
    assert model.stream("the cat", pieces.append, max_tokens=12).text == sampled.text
    assert "".join(pieces) == sampled.text
    greedy = model.generate("the cat", search="greedy", max_tokens=12)
    assert greedy.tokens == model.generate("the cat", beam=1, max_tokens=12).tokens
    with pytest.raises(ValueError, match="required: this does not apply to a run for causal lm"):
        model.generate("the cat", required=["dog"])


def test_samples_depend_on_prompt_and_seed_and_are_batch_invariant(model: Predictor) -> None:
    texts = ["the cat", "a dog", "the cat sat", ""]
    together = [result.text for result in model.translate(texts, temperature=1.0, max_tokens=9)]
    assert together == [model.translate(text, temperature=1.0, max_tokens=9).text for text in texts]
    assert together == [result.text for result in model.translate(texts[::-1], temperature=1.0, max_tokens=9)][::-1]
    by_seed = [model.translate("the cat", temperature=1.0, max_tokens=9, seed=seed).text for seed in range(6)]
    assert len(set(by_seed)) > 1


def test_nbest_returns_several_continuations_of_a_prompt(model: Predictor) -> None:
    result = model.translate("the", temperature=1.5, nbest=4, max_tokens=8)
    assert len(result.alternatives) == 3
    assert all(other.text.startswith("the") for other in result.alternatives)
    searched = model.translate("the", beam=4, nbest=4, max_tokens=8)
    scores = [searched.score, *(other.score for other in searched.alternatives)]
    assert scores == sorted(scores, reverse=True)


def test_invalid_prompts_are_reported(model: Predictor) -> None:
    too_long = model.translate("the cat " * 60)
    assert "and 39 is the most" in too_long.error
    assert "half a character" in model.translate("\ud800").error
    not_a_text: Any = 5
    with pytest.raises(ValueError, match="is not a text"):
        model.translate([not_a_text])


def test_perplexity_equals_the_mean_over_tokens(model: Predictor) -> None:
    texts = ["the cat sat on the mat", "a dog", "the dog and the cat ran in the park " * 6]
    found = compute_perplexity(model, texts, lambda count: None)
    total, tokens = 0.0, 0
    network, max_length = model.run.bundle.model, model.run.max_source_tokens
    for text in texts:
        sequence = [BOS, *model.run.target_tokens(text), EOS]
        for at in range(0, len(sequence) - 1, max_length):
            before, after = sequence[at : at + max_length], sequence[at + 1 : at + 1 + max_length]
            source, mask = torch.zeros(1, 0, dtype=torch.long), torch.ones(1, 0, dtype=torch.bool)
            with torch.no_grad():
                logits = network.logits(network(source, mask, torch.tensor([before[: len(after)]])).features[0])
            logits[:, [PAD, BOS]] = -torch.inf
            total += float(logits.double().log_softmax(-1)[range(len(after)), after].sum())
            tokens += len(after)
    assert found.tokens == tokens
    assert found.words == sum(len(text.split()) for text in texts)
    assert found.log_probability == pytest.approx(total, rel=1e-5)
    assert found.perplexity == pytest.approx(torch.tensor(-total / tokens).exp().item(), rel=1e-4)
    assert found.bits_per_byte == pytest.approx(
        -total / torch.tensor(2.0).log().item() / sum(len(text.strip().encode()) for text in texts), rel=1e-4
    )


def test_causal_self_attention_is_captured(model: Predictor) -> None:
    captured = model.attend("the cat sat on the mat").without_special_tokens().merge_words()
    assert captured.kinds == ["decoder"]
    assert captured.rows("decoder").labels == ("the", "cat", "sat", "on", "the", "mat")
    weights = captured.matrix("decoder", 0, 1)
    assert (weights[1:].max(1) > 0).all()
    assert all(weights[row, row + 1 :].max() == 0 for row in range(5)), "later tokens get no weight"
    with pytest.raises(ValueError, match="for models that have a source"):
        model.attend("the cat", attribution=True)
