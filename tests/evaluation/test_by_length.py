"""Scores by source length."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.evaluation.by_length import MIN_BUCKET_SIZE, Bucket, plot_by_length, score_by_length, source_lengths
from regard.evaluation.metrics import corpus_score


def sources_with_lengths(lengths: list[int]) -> list[str]:
    return [" ".join(["w"] * length) for length in lengths]


@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=120), buckets=st.integers(1, 8), data=st.data())
def test_buckets_have_the_count_and_score_of_their_sources(
    lengths: list[int], buckets: int, data: st.DataObject
) -> None:
    correct = data.draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    outputs, references = ["x"] * len(lengths), [["x" if each else "y" for each in correct]]
    found = score_by_length("exact", sources_with_lengths(lengths), outputs, references, "13a", buckets)
    assert len(found) <= buckets
    for bucket in found:
        inside = [at for at, length in enumerate(lengths) if bucket.shortest <= length <= bucket.longest]
        assert bucket.count == len(inside) >= MIN_BUCKET_SIZE
        assert bucket.value == pytest.approx(100 * sum(correct[at] for at in inside) / len(inside))
    for before, after in itertools.pairwise(found):
        assert before.longest < after.shortest


@given(lengths=st.lists(st.integers(1, 40), min_size=MIN_BUCKET_SIZE, max_size=80))
def test_every_sentence_is_in_a_bucket_if_one_can_be_filled(lengths: list[int]) -> None:
    texts = ["x"] * len(lengths)
    assert sum(
        bucket.count for bucket in score_by_length("exact", sources_with_lengths(lengths), texts, [texts], "13a")
    ) == len(lengths)


def test_buckets_have_about_equal_sizes() -> None:
    lengths = list(range(1, 61))
    found = score_by_length("exact", sources_with_lengths(lengths), ["x"] * 60, [["x"] * 60], "13a", buckets=6)
    assert [(bucket.shortest, bucket.longest, bucket.count) for bucket in found] == [
        (1, 10, 10),
        (11, 20, 10),
        (21, 30, 10),
        (31, 40, 10),
        (41, 50, 10),
        (51, 60, 10),
    ]


def test_sources_of_one_length_are_one_bucket() -> None:
    outputs = ["a b c d"] * 5 + ["a b x d"] * 5
    references = [["a b c d"] * 10]
    value = corpus_score("bleu", outputs, references).value
    assert score_by_length("bleu", ["one two"] * 10, outputs, references, "13a") == [Bucket(2, 2, 10, value)]


def test_length_is_in_characters_for_scripts_without_spaces() -> None:
    sources = ["猫"] * 10 + ["猫が座った"] * 10
    outputs, reference = ["x"] * 20, ["x"] * 10 + ["y"] * 10
    assert score_by_length("exact", sources, outputs, [reference], "char", buckets=2) == [
        Bucket(1, 1, 10, 100.0),
        Bucket(5, 5, 10, 0.0),
    ]


def test_several_references_and_the_tokenizer_are_passed_on() -> None:
    sources, outputs = ["a b"] * 6, ["猫坐在垫子上"] * 6
    references = [["狗"] * 6, ["猫坐在垫子上"] * 6]
    (bucket,) = score_by_length("bleu", sources, outputs, references, "zh")
    assert bucket.value == pytest.approx(100)


@pytest.mark.parametrize(
    ("sources", "unit", "lengths"),
    [
        (["the cat sat", "a dog"], "words", [3, 2]),
        (["他在 Google 工作过很多年，现在住在北京。", "猫坐在垫子上。"], "characters", [22, 7]),
        (["猫がマットの上に座った。", "猫が 座った"], "characters", [12, 5]),
        (["แมวนั่งบนเสื่อ", "แมว นั่ง"], "characters", [14, 7]),
        (["2022-03-03", "2022-3-3"], "characters", [10, 8]),
        (["고양이가 매트 위에 앉았다.", "고양이"], "words", [4, 1]),
        # Of several languages: a character of a script without spaces counts as a word.
        (["the old cat sat on the mat"] * 8 + ["猫坐在垫子上"], "words", [7] * 8 + [6]),
        ([], "words", []),
    ],
)
def test_source_lengths(sources: list[str], unit: str, lengths: list[int]) -> None:
    assert source_lengths(sources) == (unit, lengths)


def test_spaces_in_chinese_do_not_change_the_unit() -> None:
    sources = ["猫坐在垫子上 和 狗"] * 10 + ["猫坐在垫子上，狗睡在门边，鸟在树上唱歌"] * 10
    outputs, reference = ["x"] * 20, ["x"] * 10 + ["y"] * 10
    assert score_by_length("exact", sources, outputs, [reference], "zh", buckets=2) == [
        Bucket(8, 8, 10, 100.0),
        Bucket(19, 19, 10, 0.0),
    ]


def test_the_plot_is_a_png(tmp_path: Path) -> None:
    plot_by_length("bleu", {"run": [Bucket(1, 3, 10, 20.0), Bucket(4, 9, 10, 30.0)]}, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
