"""Masked language modeling: which tokens are masked, and next-sentence prediction."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batch import load_batch
from regard.data.corpus import Corpus, prepare
from regard.data.dataset_kinds.documents import MaskedDocuments
from regard.data.masking import MASK_RATE, RANDOM_RATE, MaskedPassages, mask_passages, mask_tokens
from regard.data.settings import DataSettings, MaskSettings
from regard.models.settings import TextSource
from regard.special_tokens import BOS, EOS, MASK, PAD

WORD_STARTS = np.array([False] * 5 + [True, False] * 10)


@given(st.lists(st.integers(MASK + 1, 24), min_size=1, max_size=40), st.booleans(), st.integers(0, 1000))
def test_labels_are_the_original_tokens(tokens: list[int], whole_words: bool, seed: int) -> None:
    original = [BOS, *tokens, EOS]
    rng = np.random.default_rng(seed)
    inputs, labels = mask_tokens(original, WORD_STARTS, MaskSettings(probability=0.2, whole_words=whole_words), rng)
    for token, masked, label in zip(original, inputs, labels, strict=True):
        assert label in (PAD, token)
        if label == PAD:
            assert masked == token
    assert inputs[0] == BOS
    assert inputs[-1] == EOS
    count = sum(label != PAD for label in labels)
    assert count >= 1
    if not whole_words:
        assert count == max(1, round(0.2 * len(tokens)))


@given(st.lists(st.integers(MASK + 1, 24), min_size=2, max_size=40), st.integers(0, 1000))
def test_whole_word_masking_never_masks_part_of_a_word(tokens: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    _, labels = mask_tokens([BOS, *tokens, EOS], WORD_STARTS, MaskSettings(whole_words=True), rng)
    selected = [label != PAD for label in labels[1:-1]]
    for at in range(1, len(tokens)):
        if not WORD_STARTS[tokens[at]]:  # it continues the word before
            assert selected[at] == selected[at - 1]


def test_selected_tokens_are_masked_replaced_or_kept_at_the_documented_rates() -> None:
    rng = np.random.default_rng(1)
    tokens = [BOS, *[5 + n % 20 for n in range(40_000)], EOS]
    inputs, labels = (np.array(each) for each in mask_tokens(tokens, WORD_STARTS, MaskSettings(), rng))
    selected = labels != PAD
    assert abs(selected.mean() - 0.15) < 0.001
    masked, unchanged = (inputs[selected] == MASK).mean(), (inputs[selected] == labels[selected]).mean()
    assert abs(masked - MASK_RATE) < 0.02
    # A random token is the original one by chance, once in twenty.
    assert abs(unchanged - (1 - MASK_RATE - RANDOM_RATE + RANDOM_RATE / 20)) < 0.02
    assert inputs.max() < len(WORD_STARTS)
    assert inputs[selected].min() >= MASK


def masked_corpus(folder: Path, segments: int = 1) -> tuple[Corpus, MaskedPassages]:
    lines = [f"the {color} dog {verb} near house {n}" for n in range(30) for color in ("red", "big") for verb in "ab"]
    (folder / "text.txt").write_text("\n".join(lines))
    data = DataSettings(text=(folder / "text.txt",), max_tokens=24)
    corpus = prepare(data, folder / "data", kind=MaskedDocuments(), source=TextSource(bos=True, segments=segments))
    assert isinstance(corpus.train, MaskedPassages)
    return corpus, corpus.train


def test_passages_share_rows_and_masking_is_a_function_of_the_key(tmp_path: Path) -> None:
    corpus, train = masked_corpus(tmp_path)
    numbers = np.arange(12)
    first, again, other = (load_batch(corpus, train, numbers, settings=DataSettings(), key=key) for key in (7, 7, 8))
    assert torch.equal(first.source, again.source)
    assert torch.equal(first.labels, again.labels)
    assert not torch.equal(first.labels, other.labels)
    assert len(first.source) < 12  # several to a row
    assert (first.source == BOS).sum() == 12
    assert (first.position[first.source == BOS] == 0).all()
    original = torch.where(first.labels != PAD, first.labels, first.source)[first.mask]
    found = [row.tolist() for row in original.tensor_split((original == EOS).nonzero()[:, 0] + 1)]
    assert found[:12] == [[BOS, *train.tokens(number), EOS] for number in range(12)]


def test_half_of_the_second_segments_are_random(tmp_path: Path) -> None:
    _, train = masked_corpus(tmp_path, segments=2)
    assert train.segments == 2
    batches = [mask_passages(train, [at // 4], MaskSettings(), at) for at in range(4 * len(train))]
    is_next = torch.cat([batch.next_sentence[batch.inputs == BOS] for batch in batches]).float()
    assert 0.4 < is_next.mean() < 0.6
    for number, batch in enumerate(batches):
        original = torch.where(batch.labels != PAD, batch.labels, batch.inputs)[0]
        tokens = original[original != PAD].tolist()[1:-1]
        split = tokens.index(EOS)
        if batch.next_sentence[0, 0] == 1:
            assert [*tokens[:split], *tokens[split + 1 :]] == train.tokens(number // 4)
        assert (batch.inputs == EOS).sum() == 2


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 30))
def test_passages_have_at_most_max_tokens(max_tokens: int) -> None:
    class Stored:
        lengths = np.array([1, 5, 40, 7], np.int32)

    for pairs in (False, True):
        found = MaskedPassages.build(Stored(), Stored(), np.arange(4), max_tokens, None, pairs=pairs)  # type: ignore[arg-type]
        assert found.target_lengths.max() <= max(max_tokens, 5)
        covered = (found.spans[:, 2] - found.spans[:, 1]).sum()
        assert covered <= 53
        if not pairs:
            assert covered == 53


def test_the_masked_share_must_be_below_one() -> None:
    with pytest.raises(ValueError, match="probability"):
        MaskSettings.parse({"probability": 1.0})
