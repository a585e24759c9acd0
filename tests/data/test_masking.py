"""Plain text with words hidden."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batching import load_batch
from regard.data.dataset import Corpus, prepare
from regard.data.kinds.documents import MaskedDocuments
from regard.data.masking import HIDDEN, REPLACED, Masked, guesses, hidden
from regard.data.settings import DataSettings, MaskSettings
from regard.models.settings import TextSource
from regard.special_tokens import BEGIN, END, MASK, PAD

STARTS = np.array([False] * 5 + [True, False] * 10)


@given(st.lists(st.integers(MASK + 1, 24), min_size=1, max_size=40), st.booleans(), st.integers(0, 1000))
def test_what_is_to_be_said_is_what_stood_there(tokens: list[int], whole: bool, seed: int) -> None:
    framed = [BEGIN, *tokens, END]
    dice = np.random.default_rng(seed)
    read, said = hidden(framed, STARTS, MaskSettings(share=0.2, whole_words=whole), dice)
    for before, now, asked in zip(framed, read, said, strict=True):
        assert asked in (PAD, before)
        if asked == PAD:
            assert now == before
    assert read[0] == BEGIN
    assert read[-1] == END
    count = sum(each != PAD for each in said)
    assert count >= 1
    if not whole:
        assert count == max(1, round(0.2 * len(tokens)))


@given(st.lists(st.integers(MASK + 1, 24), min_size=2, max_size=40), st.integers(0, 1000))
def test_a_word_is_hidden_as_a_whole_or_not_at_all(tokens: list[int], seed: int) -> None:
    _, said = hidden([BEGIN, *tokens, END], STARTS, MaskSettings(whole_words=True), np.random.default_rng(seed))
    asked = [each != PAD for each in said[1:-1]]
    for at in range(1, len(tokens)):
        if not STARTS[tokens[at]]:  # it goes on with the word before
            assert asked[at] == asked[at - 1]


def test_most_are_hidden_some_replaced_some_stay() -> None:
    dice = np.random.default_rng(1)
    tokens = [BEGIN, *[5 + n % 20 for n in range(40_000)], END]
    read, said = (np.array(each) for each in hidden(tokens, STARTS, MaskSettings(), dice))
    chosen = said != PAD
    assert abs(chosen.mean() - 0.15) < 0.001
    masked, same = (read[chosen] == MASK).mean(), (read[chosen] == said[chosen]).mean()
    assert abs(masked - HIDDEN) < 0.02
    # A replacement is the word itself by chance, once in twenty.
    assert abs(same - (1 - HIDDEN - REPLACED + REPLACED / 20)) < 0.02
    assert read.max() < len(STARTS)
    assert read[chosen].min() >= MASK


def corpus_in(folder: Path, segments: int = 1) -> tuple[Corpus, Masked]:
    lines = [f"the {colour} dog {verb} near house {n}" for n in range(30) for colour in ("red", "big") for verb in "ab"]
    (folder / "text.txt").write_text("\n".join(lines))
    data = DataSettings(text=(folder / "text.txt",), longest=24)
    corpus = prepare(data, folder / "data", kind=MaskedDocuments(), source=TextSource(bos=True, segments=segments))
    assert isinstance(corpus.train, Masked)
    return corpus, corpus.train


def test_passages_share_rows_and_a_batch_is_a_function_of_its_key(tmp_path: Path) -> None:
    corpus, train = corpus_in(tmp_path)
    numbers = np.arange(12)
    first, again, other = (load_batch(corpus, train, numbers, settings=DataSettings(), key=key) for key in (7, 7, 8))
    assert torch.equal(first.source, again.source)
    assert torch.equal(first.labels, again.labels)
    assert not torch.equal(first.labels, other.labels)
    assert len(first.source) < 12  # several to a row
    assert (first.source == BEGIN).sum() == 12
    assert (first.position[first.source == BEGIN] == 0).all()
    told = torch.where(first.labels != PAD, first.labels, first.source)
    texts = [train.span(number) for number in range(12)]
    found = [row.tolist() for row in told[first.mask].tensor_split((told[first.mask] == END).nonzero()[:, 0] + 1)]
    assert found[:12] == [[BEGIN, *text, END] for text in texts]


def test_half_of_the_second_parts_are_from_elsewhere(tmp_path: Path) -> None:
    _, train = corpus_in(tmp_path, segments=2)
    assert train.parts == 2
    drawn = [guesses(train, [at // 4], MaskSettings(), at) for at in range(4 * len(train))]
    follows = torch.cat([each.follows[each.source == BEGIN] for each in drawn]).float()
    assert 0.4 < follows.mean() < 0.6
    for number, each in enumerate(drawn):
        told = torch.where(each.after != PAD, each.after, each.source)[0]
        parts = told[told != PAD].tolist()[1:-1]
        cut = parts.index(END)
        if each.follows[0, 0] == 1:
            assert [*parts[:cut], *parts[cut + 1 :]] == train.span(number // 4)
        assert (each.source == END).sum() == 2


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 30))
def test_nothing_is_longer_than_a_model_reads(longest: int) -> None:
    class Stored:
        lengths = np.array([1, 5, 40, 7], np.int32)

    for pairs in (False, True):
        found = Masked.within(Stored(), Stored(), np.arange(4), longest, None, pairs=pairs)  # type: ignore[arg-type]
        assert found.target_lengths.max() <= max(longest, 5)
        covered = (found.where[:, 2] - found.where[:, 1]).sum()
        assert covered <= 53
        if not pairs:
            assert covered == 53


def test_a_share_is_a_share() -> None:
    with pytest.raises(ValueError, match="share"):
        MaskSettings.parse({"share": 1.0})
