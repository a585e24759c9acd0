"""Passages with a question, and the span of the passage that answers it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.data.answer_spans import encode_span_example
from regard.data.dataset_kinds.base import DatasetKind, load_labels, target_sequences
from regard.data.example import Example
from regard.data.pair_dataset import PairDataset
from regard.data.ragged_array import Ragged, RaggedWriter
from regard.data.settings import DataSettings
from regard.data.targets.base import Target
from regard.data.targets.labels import SpanLabels
from regard.data.tokenization import REPORT_EVERY, Origins, StoredTexts, Tokenization
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    from regard.data.batch import Batch
    from regard.data.corpus import Corpus


class SpanPairs(DatasetKind):
    """Targets are the positions of the first and the last token of an answer, counted from 1."""

    keeps_case = False
    allows_empty = True

    def store_annotations(
        self, examples: Iterator[Example], folder: Path, name: str, settings: DataSettings
    ) -> Iterator[Example]:
        """The index of each answer's occurrence is stored."""
        with RaggedWriter(folder / f"{name}.occurrences", np.int32) as writer:
            for example in examples:
                writer.append([example.occurrence])
                yield example

    def build_target_vocabulary(self, texts: Iterable[str]) -> Vocabulary | None:
        return SpanLabels(unanswered=not all(texts))

    def target_vocabulary_from_labels(self, labels: Sequence[str], tokenizer: Vocabulary) -> Vocabulary:
        return SpanLabels()

    def load_target(self, path: Path) -> Target:
        return load_labels(path, SpanLabels)

    def tokenize(
        self, job: Tokenization, name: str, origins: Origins, selected: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        tokenizer = job.vocabularies["source"]
        assert isinstance(tokenizer, SubwordTokenizer)
        usable = selected.copy()
        texts = StoredTexts(job.folder, name, job.protection)
        occurrences = Ragged(job.folder / f"{name}.occurrences", np.int32)
        dtype = job.dtype(name)
        with (
            RaggedWriter(job.folder / f"{name}.source", dtype) as sources,
            RaggedWriter(job.folder / f"{name}.target", dtype) as targets,
        ):
            for at in range(len(texts)):
                encoded = encode_span_example(
                    *texts.raw(at), int(occurrences[at][0]), tokenizer, job.source, job.settings.max_tokens
                )
                if isinstance(encoded, str):
                    job.rejected.add(origins.example(job.folder, name, at), encoded)
                    usable[at] = False
                    encoded = [], (0, 0)
                sources.append(encoded[0])
                targets.append([position + 1 for position in encoded[1]])
                if at % REPORT_EVERY == 0:
                    job.report("finding answers", at, len(texts))
        job.report("finding answers", len(texts), len(texts))
        return usable

    def collate(
        self,
        corpus: "Corpus",
        dataset: PairDataset,
        numbers: NDArray[np.int64],
        settings: DataSettings | None,
        key: int,
    ) -> "Batch":
        from regard.data.batch import collate_pairs

        return collate_pairs(corpus, dataset, *target_sequences(dataset, numbers.tolist()), numbers, settings, key)
