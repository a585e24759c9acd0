"""Tagging, from files to tags."""

from pathlib import Path

import pytest
import torch

from regard.data.batch import load_batch
from regard.data.corpus import Corpus, prepare
from regard.data.dataset_kinds.tag_pairs import TagPairs
from regard.data.pair_dataset import PairDataset
from regard.data.settings import DataSettings
from regard.data.targets.labels import TagLabels
from regard.inference.predictor import Predictor
from regard.loading import predictor_from_bundle
from regard.special_tokens import BOS, PAD
from regard.tasks.base import get_task
from regard.training.run import new_bundle
from regard.training.settings import run_settings

ROWS = [
    (f"{name} went to {location} again", f"B-PER O O {'B-LOC I-LOC' if ' ' in location else 'B-LOC'} O")
    for name in ("Anna", "Bob", "Xaverius", "Mia")
    for location in ("Rome", "New York", "Oslo", "San Marino")
]


def conll(rows: list[tuple[str, str]]) -> str:
    return "\n\n".join(
        "\n".join(f"{word} x {tag}" for word, tag in zip(text.split(), tags.split(), strict=True))
        for text, tags in rows
    )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Corpus, Predictor]:
    folder = tmp_path_factory.mktemp("tags")
    (folder / "train.conll").write_text("-DOCSTART- x O\n\n" + conll(ROWS))
    settings = run_settings(
        None, {}, ["model.encoder.width=16", "model.source.bos=true"], {"data": {"pairs": [folder / "train.conll"]}},
        task="tagging",
    )  # fmt: skip
    corpus = prepare(settings.data, folder / "data", source=settings.model.source, kind=get_task(settings.task).data())
    torch.manual_seed(1)
    found = predictor_from_bundle(new_bundle(settings, corpus, torch.device("cpu")))
    found.run.bundle.model.eval()
    return corpus, found


def test_a_batch_has_a_tag_at_the_first_token_of_each_word(prepared: tuple[Corpus, Predictor]) -> None:
    corpus, _ = prepared
    assert isinstance(corpus.train, PairDataset)
    assert isinstance(corpus.target_vocabulary, TagLabels)
    numbers = torch.arange(len(corpus.train)).numpy()
    batch = load_batch(corpus, corpus.train, numbers, settings=DataSettings())
    for row, number in enumerate(numbers.tolist()):
        text, tags = corpus.train.texts(number)
        tag_tokens = [token for token in batch.labels[row].tolist() if token != PAD]
        assert corpus.target_vocabulary.decode([tag_tokens]) == [tags]
        assert batch.source[row, 0] == BOS
        labeled_positions = (batch.labels[row] != PAD).nonzero()[:, 0].tolist()
        pieces = corpus.source_processor.pieces(batch.source[row].tolist())
        assert all(pieces[position].startswith("▁") for position in labeled_positions)
        assert len(labeled_positions) == len(text.split())


def test_every_word_gets_a_tag_and_tags_are_batch_invariant(prepared: tuple[Corpus, Predictor]) -> None:
    _, tagger = prepared
    texts = ["Anna went to Rome", "Bob", "  Xaverius   went\tagain  "]
    together = tagger.translate(texts)
    assert [len(each.text.split()) for each in together] == [4, 1, 3]
    assert [each.text for each in together] == [tagger.translate(text).text for text in texts]
    assert [word for word, _ in tagger.tag(texts[2])] == ["Xaverius", "went", "again"]


def test_invalid_texts_are_reported(prepared: tuple[Corpus, Predictor]) -> None:
    _, tagger = prepared
    assert tagger.translate("").error == "it is empty"
    assert "longer than" in tagger.translate("Anna " * 400).error
    assert "half a character" in tagger.translate("\ud800").error


def test_examples_without_a_tag_for_each_word_are_rejected(tmp_path: Path) -> None:
    rows = "".join(f"{text}\t{tags}\n" for text, tags in ROWS) + "Anna went\tB-PER\n"
    (tmp_path / "train.tsv").write_text(f"text\ttags\n{rows}")
    settings = run_settings(None, {}, [], {"data": {"pairs": [tmp_path / "train.tsv"]}}, task="tagging")
    corpus = prepare(settings.data, tmp_path / "data", source=settings.model.source, kind=TagPairs())
    assert corpus.rejected == {"not as many tags as words": 1}
    assert len(corpus.train) + len(corpus.valid) == len(ROWS)
