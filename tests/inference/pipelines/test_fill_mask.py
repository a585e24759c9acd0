"""Filling masks, and text embeddings."""

import numpy as np
import pytest
import torch

from regard.data.settings import SubwordSettings
from regard.data.tokenizers.sentencepiece_tokenizer import train_tokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.evaluation.perplexity import MASKING_ROUNDS, compute_masked_perplexity
from regard.inference.predictor import Predictor
from regard.loading import predictor_from_bundle
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle
from regard.runs.folder import RunDescription
from regard.special_tokens import BOS, EOS, MASK, MASK_CHARACTER, PAD
from tests.bundles import LINES


@pytest.fixture(scope="module")
def subwords() -> SubwordTokenizer:
    return train_tokenizer(LINES, SubwordSettings(), 300, (MASK_CHARACTER,))


@pytest.fixture(scope="module")
def model(subwords: SubwordTokenizer) -> Predictor:
    part = {"kind": "transformer", "width": 16, "heads": 2, "feedforward": 20, "layers": 2, "position": "rotary"}
    settings = ModelSettings.parse(
        {
            "source": {"kind": "text", "bos": True},
            "encoder": part,
            "decoder": {"kind": "masked-lm", "width": 16},
            "tie": "all",
            "output_bias": True,
        }
    )
    torch.manual_seed(3)
    network = Seq2Seq(settings, source_vocabulary_size=len(subwords), target_vocabulary_size=len(subwords))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(0, 0.4)
    description = RunDescription.model_validate(
        {"max_tokens": 20, "model": settings, "tokens_per_source_token": 0.0, "truncate": True}
    )
    return predictor_from_bundle(Bundle(description, network.eval(), subwords, subwords))


def reference_logits(model: Predictor, tokens: list[int]) -> torch.Tensor:
    network = model.run.bundle.model
    source = torch.tensor([tokens])
    with torch.no_grad():
        return network.logits(network.decoder(source, network.encode(source, source != PAD)).features)[0]


def test_a_mask_is_filled_with_the_most_likely_words(model: Predictor, subwords: SubwordTokenizer) -> None:
    (gap,) = model.fill("the ___ sat on the mat", nbest=4)
    before, after = subwords.encode(["the", "sat on the mat"])
    logits = reference_logits(model, [BOS, *before, MASK, *after, EOS])[1 + len(before)]
    logits[[PAD, BOS, EOS, MASK]] = -torch.inf
    probabilities, tokens = logits.softmax(-1).topk(4)
    assert [prediction.token for prediction in gap] == tokens.tolist()
    assert [prediction.probability for prediction in gap] == pytest.approx(probabilities.tolist(), rel=1e-4)


def test_masks_can_be_written_in_three_ways_and_occur_several_times(model: Predictor) -> None:
    first = model.fill("the [MASK] sat on the <mask>")
    second = model.fill("the ___ sat on the ______")
    assert len(first) == 2
    assert [[prediction.word for prediction in gap] for gap in first] == [
        [prediction.word for prediction in gap] for gap in second
    ]


def test_the_output_is_the_text_with_the_best_words(model: Predictor) -> None:
    (gap,) = model.fill("a dog ___ in the park", nbest=2)
    result = model.translate("a dog ___ in the park", nbest=2)
    assert gap[0].token in result.tokens
    assert MASK not in result.tokens
    assert MASK_CHARACTER not in result.text
    assert len(result.alternatives) == 1
    assert result.score == pytest.approx(np.log(gap[0].probability), rel=1e-4)


def test_filling_masks_is_batch_invariant(model: Predictor) -> None:
    texts = ["the ___ sat", "a dog ran in the ___ park", "___"]
    together = model.translate(texts)
    assert [each.tokens for each in together] == [model.translate(text).tokens for text in texts]


def test_invalid_texts_are_reported(model: Predictor) -> None:
    with pytest.raises(ValueError, match="it has no mask"):
        model.fill("the cat")
    with pytest.raises(ValueError, match="longer than the 20 tokens"):
        model.fill("the ___ " + "cat and dog " * 30)
    assert "half a character" in model.translate("\ud800 ___").error
    with pytest.raises(ValueError, match="best"):
        model.fill("the ___", nbest=0)


def test_self_attention_is_captured(model: Predictor) -> None:
    captured = model.attend("the cat sat on the mat")
    assert captured.kinds == ["encoder"]
    rows = captured.without_special_tokens().merge_words().rows("encoder").labels
    assert rows == ("the", "cat", "sat", "on", "the", "mat")
    assert captured.matrix("encoder", 0, 0).sum(1) == pytest.approx(np.ones(len(captured.source)), abs=1e-5)


def test_an_embedding_is_the_mean_of_the_encoder_states(model: Predictor, subwords: SubwordTokenizer) -> None:
    texts = ["the cat sat on the mat", "a dog", "the dog and the cat ran in the park"]
    found = model.embed(texts, normalize=False)
    for text, vector in zip(texts, found, strict=True):
        source = torch.tensor([[BOS, *subwords.encode([text])[0], EOS]])
        with torch.no_grad():
            expected = model.run.bundle.model.encode(source, source != PAD).states[0].mean(0)
        np.testing.assert_allclose(vector, expected.numpy(), atol=1e-5)
    lengths = np.linalg.norm(model.embed(texts), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)


def test_masked_perplexity_masks_every_token_once(model: Predictor, subwords: SubwordTokenizer) -> None:
    texts = ["the cat sat on the mat", "a dog ran in the park"]
    found = compute_masked_perplexity(model, texts, lambda count: None)
    total, correct, count = 0.0, 0, 0
    for tokens in subwords.encode(texts):
        framed = [BOS, *tokens, EOS]
        for masking_round in range(MASKING_ROUNDS):
            masked = [n for n in range(1, len(framed) - 1) if n % MASKING_ROUNDS == masking_round]
            logits = reference_logits(model, [MASK if n in masked else token for n, token in enumerate(framed)])
            logits[:, [PAD, BOS]] = -torch.inf
            for position in masked:
                total += float(logits[position].log_softmax(-1)[framed[position]])
                correct += int(logits[position].argmax()) == framed[position]
                count += 1
    assert found.tokens == count == sum(map(len, subwords.encode(texts)))
    assert found.log_probability == pytest.approx(total, rel=1e-4)
    assert found.accuracy == pytest.approx(100 * correct / count)
