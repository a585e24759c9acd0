"""Texts with a label for every word."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.data.dataset_kinds.base import DatasetKind, load_labels
from regard.data.input_validation import RejectedExamples
from regard.data.pair_dataset import PairDataset
from regard.data.placeholders import Protection
from regard.data.settings import DataSettings
from regard.data.targets.base import Target
from regard.data.targets.labels import TagLabels
from regard.data.tokenization import Origins, StoredTexts, Tokenization
from regard.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    from regard.data.batch import Batch
    from regard.data.corpus import Corpus


class TagPairs(DatasetKind):
    """Words separated by spaces, and as many tags."""

    def usable_examples(
        self, folder: Path, name: str, origins: Origins, rejected: RejectedExamples, count: int
    ) -> NDArray[np.bool_]:
        texts = StoredTexts(folder, name, Protection({}))
        same = np.ones(count, bool)
        for at in range(len(texts)):
            words, tags = (len(side.split()) for side in texts.raw(at))
            if words != tags:
                rejected.add(origins.example(folder, name, at), "not as many tags as words")
                same[at] = False
        return same

    def build_target_vocabulary(self, texts: Iterable[str]) -> Vocabulary | None:
        return TagLabels.from_targets(texts)

    def target_vocabulary_from_labels(self, labels: Sequence[str], tokenizer: Vocabulary) -> Vocabulary:
        return TagLabels(labels)

    def load_target(self, path: Path) -> Target:
        return load_labels(path, TagLabels)

    def tokenize(
        self, job: Tokenization, name: str, origins: Origins, selected: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Sources are tokenized word by word, and where each word begins is stored, too."""
        usable = np.ones(len(origins.lines), bool)
        for side in job.vocabularies:
            job.encode_side(name, side, origins, selected, usable, by_word=side == "source")
        return usable

    def collate(
        self,
        corpus: "Corpus",
        dataset: PairDataset,
        numbers: NDArray[np.int64],
        settings: DataSettings | None,
        key: int,
    ) -> "Batch":
        from regard.data.batch import Batch, collate_sources, pad_sequences

        source, mask = collate_sources(corpus.source_processor, [dataset.tokens(int(n))[0] for n in numbers])
        labels = pad_sequences([dataset.position_labels(int(number)) for number in numbers])
        return Batch(source, mask, source, labels, numbers)
