"""Batches: every example once, within the budget, with little padding, in an order that depends on seed and epoch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from regard.data.batch import Batch, collate_tokens, load_batch, pad_sequences, validation_batches
from regard.data.batch_plan import default_batch_tokens, plan_epoch
from regard.data.corpus import Corpus, prepare
from regard.data.dataset_kinds.text_pairs import TextPairs
from regard.data.settings import DataSettings, SubwordSettings
from regard.models.settings import TextSource
from regard.special_tokens import BOS, EOS, PAD
from tests.data.files import write

Lengths = NDArray[np.int32]
lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=60).map(
    lambda both: np.array(both, np.int32).reshape(-1, 2)
)
seeds = st.integers(-(2**63), 2**63 - 1)


def typical_lengths(count: int = 4000) -> tuple[Lengths, Lengths]:
    """As in a real corpus: most are short, and a target is about as long as its source."""
    rng = np.random.default_rng(0)
    source = np.clip(rng.lognormal(2.7, 0.6, count), 2, 250)
    target = np.clip(source * rng.lognormal(0.05, 0.2, count), 2, 250)
    return source.astype(np.int32), target.astype(np.int32)


def as_lists(plan: list[NDArray[np.int64]]) -> list[list[int]]:
    return [batch.tolist() for batch in plan]


@given(both=lengths, tokens=st.integers(16, 300), seed=seeds, epoch=st.integers(0, 2**40))
def test_every_example_is_in_one_batch_and_every_batch_within_the_budget(
    both: Lengths, tokens: int, seed: int, epoch: int
) -> None:
    source, target = both[:, 0], both[:, 1]
    plan = plan_epoch(source, target, tokens=tokens, seed=seed, epoch=epoch)
    assert sorted(number for batch in plan for number in batch.tolist()) == list(range(len(both)))
    for batch in plan:
        max_length = max(source[batch].max(), target[batch].max())
        assert max_length * len(batch) <= tokens or len(batch) == 1


@given(both=lengths, tokens=st.integers(16, 300), seed=seeds, epoch=st.integers(0, 9))
def test_the_plan_is_a_function_of_seed_and_epoch(both: Lengths, tokens: int, seed: int, epoch: int) -> None:
    plans = []
    for state in (1, 2):
        np.random.seed(state)  # the global generator has no effect
        plans.append(as_lists(plan_epoch(both[:, 0], both[:, 1], tokens=tokens, seed=seed, epoch=epoch)))
    assert plans[0] == plans[1]


def test_epochs_and_seeds_differ_in_order_and_in_batches() -> None:
    source, target = typical_lengths()
    plans = [
        as_lists(plan_epoch(source, target, tokens=2048, seed=seed, epoch=epoch))
        for seed, epoch in [(1, 0), (1, 1), (2, 0), (-1, 0)]
    ]
    for first in range(4):
        for second in range(first):
            assert plans[first] != plans[second]
            common = {frozenset(batch) for batch in plans[first]} & {frozenset(batch) for batch in plans[second]}
            assert len(common) < len(plans[first]) / 2


def test_batches_are_not_ordered_by_length() -> None:
    source, target = typical_lengths()
    plan = plan_epoch(source, target, tokens=2048, seed=1, epoch=0)
    max_lengths = np.array([target[batch].max() for batch in plan])
    assert abs(np.corrcoef(max_lengths, np.arange(len(max_lengths)))[0, 1]) < 0.3


def test_there_is_little_padding_and_batches_are_full() -> None:
    """In random order the padded sources would be three times as large."""
    source, target = typical_lengths(20_000)
    plan = plan_epoch(source, target, tokens=2048, seed=1, epoch=0)
    for lengths, max_padding in ((source, 1.15), (target, 1.06)):
        padding = sum(int(lengths[batch].max()) * len(batch) for batch in plan) / lengths.sum()
        assert 1 <= padding < max_padding
    assert len(plan) < 1.15 * np.maximum(source, target).sum() / 2048


def test_batches_of_similar_lengths_mix_ratios_of_lengths() -> None:
    """Sorted by both lengths, batches would differ in their ratio of lengths as much as single examples do."""
    source, target = typical_lengths(20_000)
    ratios = np.log(source / target)
    batch_ratios = [ratios[batch].mean() for batch in plan_epoch(source, target, tokens=2048, seed=1, epoch=0)]
    assert np.std(batch_ratios) < 0.5 * np.std(ratios)


def test_larger_corpora_have_larger_default_batches() -> None:
    sizes = [default_batch_tokens(10**power) for power in range(3, 10)]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (1024, 4096)


def test_an_example_longer_than_the_budget_is_alone() -> None:
    source, target = np.array([5, 900, 5, 5], np.int32), np.array([5, 7, 5, 800], np.int32)
    plan = plan_epoch(source, target, tokens=100, seed=1, epoch=0)
    assert sorted(map(sorted, as_lists(plan))) == [[0, 2], [1], [3]]


@given(sequences=st.lists(st.lists(st.integers(1, 99), min_size=1, max_size=9), min_size=1, max_size=6))
def test_padding_is_at_the_end(sequences: list[list[int]]) -> None:
    rows = pad_sequences(sequences)
    assert rows.shape == (len(sequences), max(map(len, sequences)))
    assert rows.dtype == torch.int64
    for row, sequence in zip(rows.tolist(), sequences, strict=True):
        assert row == sequence + [PAD] * (len(row) - len(sequence))


def test_a_batch_by_hand() -> None:
    batch = collate_tokens([[7, 8, EOS], [9, EOS]], [[5, EOS], [6, 7, 8, EOS]], np.array([4, 2]))
    assert batch.source.tolist() == [[7, 8, EOS], [9, EOS, PAD]]
    assert batch.mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.decoder_input.tolist() == [[BOS, 5, PAD, PAD], [BOS, 6, 7, 8]]
    assert batch.labels.tolist() == [[5, EOS, PAD, PAD], [6, 7, 8, EOS]]
    assert batch.tokens == 6
    assert batch.indices.tolist() == [4, 2]


# From a corpus


TEXT: dict[str, Any] = {"kind": TextPairs(), "source": TextSource()}
SAMPLING = SubwordSettings(sampling=0.3)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder: Path = tmp_path_factory.mktemp("batches")
    words = ["red cat", "green dog", "blue house", "old tree", "new river", "another long lonely hillside"]
    lines = [f"{words[n % 6]} and {words[-n % 5]} number {n}\tnumber {n}: {words[n % 6]}\n" for n in range(30)]
    return prepare(DataSettings(pairs=(write(folder / "a.tsv", "".join(lines)),), valid_size=5), folder / "c", **TEXT)


def check_shape(batch: Batch, numbers: list[int]) -> None:
    assert batch.indices.tolist() == numbers
    assert batch.source.shape == batch.mask.shape
    assert batch.decoder_input.shape == batch.labels.shape
    assert len(batch.source) == len(batch.labels) == len(numbers)
    assert torch.equal(batch.mask, batch.source != PAD)
    assert (batch.decoder_input[:, 0] == BOS).all()
    assert ((batch.labels == EOS).sum(1) == 1).all()
    assert ((batch.source == EOS).sum(1) == 1).all()
    words = (batch.labels != PAD) & (batch.labels != EOS)  # a label is the next decoder input
    assert torch.equal(batch.labels[:, :-1][words[:, :-1]], batch.decoder_input[:, 1:][words[:, :-1]])
    assert torch.equal((batch.labels != PAD).sum(1), (batch.decoder_input != PAD).sum(1))


def decoded_texts(corpus: Corpus, batch: Batch) -> list[tuple[str, str]]:
    sources, targets = (
        corpus.source_processor.decode(batch.source.tolist()),
        corpus.target_vocabulary.decode(batch.labels.tolist()),
    )
    return list(zip(sources, targets, strict=True))


@pytest.mark.parametrize("sampling", [None, SubwordSettings(), SAMPLING])
def test_a_batch_holds_the_requested_examples(sampling: SubwordSettings | None, corpus: Corpus) -> None:
    numbers = np.array([3, 0, 11])
    batch = load_batch(
        corpus, corpus.train, numbers, settings=DataSettings(subwords=sampling) if sampling else None, key=5
    )
    check_shape(batch, [3, 0, 11])
    assert decoded_texts(corpus, batch) == [corpus.train.texts(number) for number in (3, 0, 11)]


def test_without_sampling_lengths_are_as_planned(corpus: Corpus) -> None:
    for numbers in validation_batches(corpus, corpus.train, tokens=200):
        batch = load_batch(corpus, corpus.train, numbers)
        assert batch.mask.sum(1).tolist() == corpus.train.source_lengths[numbers].tolist()
        assert (batch.labels != PAD).sum(1).tolist() == corpus.train.target_lengths[numbers].tolist()


def test_subword_sampling_is_a_function_of_the_key(corpus: Corpus) -> None:
    def load(key: int) -> Batch:
        return load_batch(corpus, corpus.train, np.arange(9), settings=DataSettings(subwords=SAMPLING), key=key)

    first, again, other = load(1), load(1), load(2)
    assert torch.equal(first.source, again.source)
    assert torch.equal(first.labels, again.labels)
    assert first.source.tolist() != other.source.tolist()
    assert first.labels.tolist() != other.labels.tolist()


def test_validation_batches_have_every_example_once(corpus: Corpus) -> None:
    numbers = [number for batch in validation_batches(corpus, corpus.valid, tokens=40) for number in batch.tolist()]
    assert sorted(numbers) == list(range(len(corpus.valid)))
