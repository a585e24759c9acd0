"""Answer spans: offsets of tokens, windows, occurrences."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.answer_spans import (
    encode_span_example,
    find_occurrences,
    occurrence_index,
    passage_windows,
    split_question,
)
from regard.data.example import Layout
from regard.data.input_validation import normalize_whitespace
from regard.data.readers import read_pairs
from regard.data.segments import add_special_tokens
from regard.data.settings import SubwordSettings
from regard.data.tokenizers.sentencepiece_tokenizer import train_tokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.models.settings import TextSource
from regard.special_tokens import BOS, EOS

SOURCE = TextSource(bos=True, segments=2)
LINES = ["the cat sat on the mat", "a dog ran to the park, and the cat saw it.", "Where did the dog run?"] * 4


@pytest.fixture(scope="module", params=["bpe", "unigram", "character", "word"])
def subwords(request: pytest.FixtureRequest) -> SubwordTokenizer:
    return train_tokenizer(LINES, SubwordSettings(kind=request.param), 320)


@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40))
def test_offsets_are_the_characters_of_each_token(subwords: SubwordTokenizer, text: str) -> None:
    text = normalize_whitespace(text)
    tokens, offsets = subwords.offsets(text)
    assert tokens == subwords.encode([text.replace("▁", "_")])[0]
    ends = [0, *(end for _, end in offsets)]
    assert ends == sorted(ends)
    covered = {at for start, end in offsets for at in range(start, end)}
    assert covered >= {at for at, letter in enumerate(text) if letter != " "}
    for (start, end), piece in zip(offsets, subwords.pieces(tokens), strict=True):
        if not piece.startswith("<0x") and piece != "<unk>":
            assert text[start:end].replace("▁", "_") == piece.removeprefix("▁")


@given(max_tokens=st.integers(12, 60), words=st.lists(st.sampled_from(LINES[1].split()), min_size=1, max_size=60))
def test_windows_cover_the_passage_within_the_limit(
    subwords: SubwordTokenizer, max_tokens: int, words: list[str]
) -> None:
    passage = " ".join(words)
    found = passage_windows(passage, "where?", subwords, SOURCE, max_tokens)
    tokens, offsets = subwords.offsets(passage)
    covered = set()
    for window in found:
        whole = add_special_tokens(window.tokens, SOURCE)
        assert len(whole) <= max_tokens
        assert whole[0] == BOS
        assert whole[window.passage_start - 1] == EOS
        assert whole[window.passage_start : -1] == window.tokens[window.passage_start - 1 :]
        covered |= set(window.offsets)
        for at, span in enumerate(window.offsets):
            assert window.char_span(window.passage_start + at, window.passage_start + at) == span
    assert covered == set(offsets)
    assert sum(len(window.offsets) for window in found) >= len(tokens)


def test_each_occurrence_of_an_answer_is_encoded(subwords: SubwordTokenizer) -> None:
    text = "a cat saw the cat and the dog ⟂ who?".replace("⟂", "\t")
    for occurrence, start in enumerate(find_occurrences("a cat saw the cat and the dog", "cat")):
        encoded = encode_span_example(text, "cat", occurrence, subwords, SOURCE, 64)
        assert not isinstance(encoded, str)
        tokens, (first, last) = encoded
        (window,) = passage_windows(*split_question(text), subwords, SOURCE, 64)
        left, right = window.char_span(first, last)
        assert (left, text[left:right]) == (start, "cat")
        assert window.tokens == tokens


def test_unusable_examples_have_a_reason(subwords: SubwordTokenizer) -> None:
    assert encode_span_example("a cat", "cat", 0, subwords, SOURCE, 64) == "no question"
    assert encode_span_example("\twho?", "cat", 0, subwords, SOURCE, 64) == "no passage"
    assert encode_span_example("a cat\twho?", "dog", 0, subwords, SOURCE, 64) == "an answer that is not in its passage"
    long = " ".join(["cat"] * 100)
    assert (
        encode_span_example(f"{long}\twho?", long, 0, subwords, SOURCE, 32)
        == "an answer longer than what is read at once"
    )
    unanswered = encode_span_example("a cat\twho?", "", 0, subwords, SOURCE, 64)
    assert not isinstance(unanswered, str)
    assert unanswered[1] == (0, 0)


@given(passage=st.text("ab ", max_size=30), answer=st.text("ab", min_size=1, max_size=3), start=st.integers(0, 30))
def test_the_occurrence_starts_at_the_given_character(passage: str, answer: str, start: int) -> None:
    begins = list(find_occurrences(passage, answer))
    index = occurrence_index(passage, answer, start)
    if start in begins:
        assert begins[index] == start


def test_squad_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    answers = [{"text": "cat", "answer_start": 14}, {"text": "the cat", "answer_start": 10}]
    questions = [
        {"question": "Who?", "answers": answers},
        {"question": "Why?", "answers": [], "is_impossible": True},
        {"question": 3},
        {"question": "When?"},
    ]
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": "a cat saw the cat", "qas": questions}]}]}))
    found = list(read_pairs(path, Layout()))
    assert [(each.target, each.occurrence, each.line, bool(each.problem)) for each in found] == [
        ("cat", 1, 1, False),
        ("the cat", 0, 1, False),
        ("", 0, 2, False),
        ("", 0, 3, True),
        ("", 0, 4, True),
    ]
    assert split_question(found[0].source) == ("a cat saw the cat", "Who?")


@pytest.mark.parametrize("content", ["[1, 2]", "{", "3", '{"data": 5}'])
def test_other_json_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"JSON|SQuAD"):
        list(read_pairs(path, Layout()))


def test_json_lines_may_have_squad_answers(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    record = {
        "context": "a cat saw the cat",
        "question": "Who?",
        "answers": {"text": ["cat"], "answer_start": [14]},
    }
    none = {**record, "answers": {"text": [], "answer_start": []}}
    path.write_text(json.dumps(record) + "\n" + json.dumps(none))
    layout = Layout(source_column="context", question_column="question", target_column="answers")
    assert [(each.target, each.occurrence) for each in read_pairs(path, layout)] == [("cat", 1), ("", 0)]
