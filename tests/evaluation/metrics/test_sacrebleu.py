"""BLEU, chrF and TER equal sacrebleu's."""

import math

import pytest
import sacrebleu

from regard.evaluation.metrics import corpus_score

OUTPUTS = ["the cat sat on the mat", "it is raining, cats and dogs", "he said : hello ."]
FIRST = ["the cat is on the mat", "it is raining cats and dogs", "he said: hello."]
SECOND = ["there is a cat on the mat", "it rains, cats and dogs", "hello, he said."]


@pytest.mark.parametrize("references", [[FIRST], [FIRST, SECOND]])
def test_bleu_chrf_and_ter_equal_sacrebleu(references: list[list[str]]) -> None:
    assert corpus_score("bleu", OUTPUTS, references).value == sacrebleu.corpus_bleu(OUTPUTS, references).score
    assert corpus_score("chrf", OUTPUTS, references).value == sacrebleu.corpus_chrf(OUTPUTS, references).score
    assert corpus_score("ter", OUTPUTS, references).value == sacrebleu.corpus_ter(OUTPUTS, references).score
    assert f"nrefs:{len(references)}" in corpus_score("bleu", OUTPUTS, references).signature


@pytest.mark.parametrize("tokenize", ["13a", "none", "char", "zh", "intl"])
def test_bleu_uses_the_given_tokenizer_and_names_it_in_the_signature(tokenize: str) -> None:
    score = corpus_score("bleu", OUTPUTS, [FIRST], tokenize)
    assert score.value == sacrebleu.corpus_bleu(OUTPUTS, [FIRST], tokenize=tokenize, force=True).score
    assert f"tok:{tokenize}|" in score.signature


def test_bleu_1_and_2_by_hand() -> None:
    """Three of four words are right, and one of three pairs: 75, and the root of 3/4 times 1/3."""
    outputs, references = ["a b c d"], [["a b x c"]]
    assert corpus_score("bleu1", outputs, references, "none").value == pytest.approx(75)
    assert corpus_score("bleu2", outputs, references, "none").value == pytest.approx(100 * math.sqrt(0.75 / 3))
