"""Scores: numbers computed by hand, and sacrebleu's own."""

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from regard.evaluation.metrics import NAMES, corpus_score, edits, exact, rouge_l, rouge_n

OUTPUTS = ["the cat sat on the mat", "it is raining, cats and dogs", "he said : hello ."]
FIRST = ["the cat is on the mat", "it is raining cats and dogs", "he said: hello."]
SECOND = ["there is a cat on the mat", "it rains, cats and dogs", "hello, he said."]
short = st.text("abc", max_size=7)
sentence = st.lists(st.sampled_from(["the", "cat", "Sat", "on", "mat"]), max_size=6).map(" ".join)


@pytest.mark.parametrize(
    ("a", "b", "count"),
    [
        ("kitten", "sitting", 3),
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("flaw", "lawn", 2),
        ("intention", "execution", 5),
        ("ab", "ba", 2),
        (["a", "b c"], ["a", "b", "c"], 2),
    ],
)
def test_edits_by_hand(a, b, count: int) -> None:
    assert edits(a, b) == count


@given(short, short, short)
def test_edits_are_a_distance(a: str, b: str, c: str) -> None:
    assert (edits(a, b) == 0) == (a == b)
    assert edits(a, b) == edits(b, a)
    assert edits(a, c) <= edits(a, b) + edits(b, c)
    assert abs(len(a) - len(b)) <= edits(a, b) <= max(len(a), len(b))


@given(a=short, at=st.integers(0, 6), letter=st.sampled_from("xyz"))
def test_one_change_is_one_edit(a: str, at: int, letter: str) -> None:
    at = min(at, len(a))
    assert edits(a, a[:at] + letter + a[at:]) == 1
    if a[at:]:
        assert edits(a, a[:at] + letter + a[at + 1 :]) == 1
        assert edits(a, a[:at] + a[at + 1 :]) == 1


def test_exact_match_by_hand() -> None:
    assert exact(" 2022-03-03\n", "2022-03-03") == 1
    assert exact("2022-03-04", "2022-03-03") == 0
    assert exact("Word", "word") == 0
    score = corpus_score("exact", ["a", "b", "c", "d"], [["a", "x", "c", "y"]])
    assert score.value == 50
    assert score.higher_is_better


def test_error_rates_by_hand() -> None:
    outputs, references = ["abcd", "xy"], [["abc", "xyzzy"]]
    cer = corpus_score("cer", outputs, references)
    assert cer.value == pytest.approx(100 * (1 + 3) / (3 + 5))
    assert not cer.higher_is_better
    wer = corpus_score("wer", ["the cat sat", "dogs"], [["the cat sat down", "the dogs"]])
    assert wer.value == pytest.approx(100 * (1 + 1) / (4 + 2))
    assert corpus_score("wer", ["a b c d"], [["x"]]).value == 400  # more than everything can be wrong


def test_error_rates_go_by_the_nearest_reference_and_its_length() -> None:
    assert corpus_score("cer", ["abcd", "xx"], [["a", "x"], ["abcde", "yyyyyy"]]).value == pytest.approx(
        100 * (1 + 1) / (5 + 1)
    )


def test_error_rates_of_empty_references_are_numbers() -> None:
    assert corpus_score("wer", ["", "a"], [["", ""]]).value == 100
    assert corpus_score("cer", ["", ""], [["", ""]]).value == 0


def test_rouge_by_hand() -> None:
    output, reference = "The cat sat on the mat", "the cat was on a mat"
    # words: the 1 of 2, cat, on, mat in common: 4 of 6 and 6
    assert rouge_n(output, reference, 1) == pytest.approx(8 / 12)
    # pairs: "the cat" only, of 5 and 5
    assert rouge_n(output, reference, 2) == pytest.approx(2 / 10)
    # the cat on mat
    assert rouge_l(output, reference) == pytest.approx(8 / 12)
    assert rouge_l("d c b a", "a b c d") == pytest.approx(2 / 8)
    assert rouge_n("d c b a", "a b c d", 1) == 1
    assert rouge_l("a b c", "a x b y c") == pytest.approx(6 / 8)


@pytest.mark.parametrize("name", ["rouge1", "rouge2", "rougeL"])
def test_rouge_of_a_corpus_is_the_mean_of_the_best_reference(name: str) -> None:
    by_hand = {"rouge1": (1, 0.5), "rouge2": (1, 0), "rougeL": (1, 0.5)}[name]
    score = corpus_score(name, ["a b", "c d"], [["a b", "x y"], ["y z", "d x"]])
    assert score.value == pytest.approx(100 * sum(by_hand) / 2)
    assert score.higher_is_better


@given(sentence, sentence)
def test_rouge_is_between_nothing_and_all(a: str, b: str) -> None:
    for function in (rouge_l, lambda o, r: rouge_n(o, r, 1), lambda o, r: rouge_n(o, r, 2)):
        assert 0 <= function(a, b) <= 1
        assert function(a, b) == pytest.approx(function(b, a))
    assert rouge_l(a, b) <= rouge_n(a, b, 1) + 1e-12
    assert rouge_l(a, a) == (1.0 if a else 0.0)


@pytest.mark.parametrize("references", [[FIRST], [FIRST, SECOND]])
def test_bleu_chrf_and_ter_are_sacrebleu_s(references: list[list[str]]) -> None:
    assert corpus_score("bleu", OUTPUTS, references).value == sacrebleu.corpus_bleu(OUTPUTS, references).score
    assert corpus_score("chrf", OUTPUTS, references).value == sacrebleu.corpus_chrf(OUTPUTS, references).score
    assert corpus_score("ter", OUTPUTS, references).value == sacrebleu.corpus_ter(OUTPUTS, references).score
    assert f"nrefs:{len(references)}" in corpus_score("bleu", OUTPUTS, references).signature


@pytest.mark.parametrize("tokenize", ["13a", "none", "char", "zh", "intl"])
def test_bleu_is_tokenised_as_asked_for_and_says_so(tokenize: str) -> None:
    score = corpus_score("bleu", OUTPUTS, [FIRST], tokenize)
    assert score.value == sacrebleu.corpus_bleu(OUTPUTS, [FIRST], tokenize=tokenize, force=True).score
    assert f"tok:{tokenize}|" in score.signature


def test_more_references_never_make_a_sentence_worse() -> None:
    # CIDEr is a mean over the references of several sentences; classes and tags have one reference.
    for name in sorted({*NAMES} - {"cider", "f1", "tags", "names"}):
        one, two = (
            corpus_score(name, OUTPUTS[:1], [FIRST[:1]]),
            corpus_score(name, OUTPUTS[:1], [FIRST[:1], OUTPUTS[:1]]),
        )
        assert two.value == pytest.approx(100 if two.higher_is_better else 0)
        assert one.value != two.value


def test_what_cannot_be_scored_is_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"^there is nothing to score\.$"):
        corpus_score("bleu", [], [[]])
    with pytest.raises(ValueError, match=r"^reference 2 has 1 sentences and the output 2\.$"):
        corpus_score("exact", ["a", "b"], [["a", "b"], ["a"]])
