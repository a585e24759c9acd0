"""Pairs whose target is a text: translations, summaries, captions, transcripts, answers."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.data.dataset_kinds.base import DatasetKind, Prompt, target_sequences
from regard.data.example import Example
from regard.data.pair_dataset import PairDataset
from regard.data.ragged_array import RaggedWriter
from regard.data.segments import add_special_tokens, encode_segments
from regard.data.settings import DataSettings
from regard.data.target_languages import language_of, strip_language_token
from regard.data.targets.base import Target
from regard.data.tokenizers import load_tokenizer
from regard.data.vocabulary import Vocabulary, text_tokenizer
from regard.models.settings import SourceSettings
from regard.special_tokens import EOS

if TYPE_CHECKING:
    from regard.data.batch import Batch
    from regard.data.corpus import Corpus


class TextPairs(DatasetKind):
    """Sources of any modality, targets in subwords."""

    target_file = "target.subwords"
    has_eos = True
    keeps_case = False

    def has_parallel_texts(self, source: SourceSettings) -> bool:
        return source.is_text

    def store_annotations(
        self, examples: Iterator[Example], folder: Path, name: str, settings: DataSettings
    ) -> Iterator[Example]:
        return _store_links(examples, folder / "train.links") if settings.alignment and name == "train" else examples

    def joint_vocabulary_texts(self, settings: DataSettings, source: SourceSettings) -> tuple[str, ...]:
        return ("source", "target") if settings.subwords.joint and source.is_text else ()

    def build_target_vocabulary(self, texts: Iterable[str]) -> Vocabulary | None:
        return None

    def load_target(self, path: Path) -> Target:
        return load_tokenizer(path)

    def collate(
        self,
        corpus: "Corpus",
        dataset: PairDataset,
        numbers: NDArray[np.int64],
        settings: DataSettings | None,
        key: int,
    ) -> "Batch":
        from regard.data.batch import collate_pairs, with_alignment_targets

        sources, targets = target_sequences(dataset, numbers.tolist())
        if settings is not None and settings.subwords.sampling:
            sources, targets = _sampled(corpus, dataset, numbers.tolist(), settings, key, sources)
        batch = collate_pairs(corpus, dataset, sources, targets, numbers, settings, key)
        return with_alignment_targets(corpus, dataset, batch)

    def prompt(self, dataset: PairDataset, number: int) -> Prompt:
        source, reference = dataset.texts(number)
        return Prompt(source, strip_language_token(reference), dataset.predictor_input(number), language_of(reference))


def _sampled(
    corpus: "Corpus",
    dataset: PairDataset,
    numbers: list[int],
    settings: DataSettings,
    key: int,
    sources: list[Any],
) -> tuple[list[Any], list[list[int]]]:
    """Sources and targets with random segmentations: BPE-dropout or subword regularization."""
    sampling = settings.subwords
    texts = [dataset.texts(number) for number in numbers]
    if corpus.protection.uses_symbols:
        texts = [corpus.protection.protect_pair(*pair) or pair for pair in texts]
    eos = [EOS] if dataset.has_eos else []
    segmented = corpus.target_vocabulary.sample([target for _, target in texts], sampling, key + 1)
    targets = [[*each, *eos] for each in segmented]
    if dataset.medium is None:
        encode = partial(text_tokenizer(corpus.source_processor).sample, settings=sampling, key=key)
        source_texts = [text for text, _ in texts]
        sources = [
            add_special_tokens(each, corpus.source_settings)
            for each in encode_segments(source_texts, corpus.source_settings, encode)
        ]
    return sources, targets


def _store_links(examples: Iterator[Example], path: Path) -> Iterator[Example]:
    """The same examples; their word links are stored."""
    with RaggedWriter(path, np.int32) as links:
        for example in examples:
            links.append([word for link in example.links for word in link])
            yield example
