"""Pairs whose target is a class."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.data.kinds.base import DatasetKind, load_labels
from regard.data.kinds.text_pairs import TextPairs
from regard.data.labels import Labels
from regard.data.pairs import PairDataset
from regard.data.settings import DataSettings
from regard.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    from regard.data.batching import Batch
    from regard.data.dataset import Corpus


class LabelPairs(DatasetKind):
    """Sources of any modality, each with one label."""

    def learn_target(self, texts: Iterable[str]) -> Vocabulary | None:
        return Labels.from_targets(texts)

    def target_of_labels(self, labels: Sequence[str], tokenizer: Vocabulary) -> Vocabulary:
        return Labels(labels)

    def load_target(self, path: Path) -> Vocabulary:
        return load_labels(path, Labels)

    def collate(
        self,
        corpus: "Corpus",
        dataset: PairDataset,
        numbers: NDArray[np.int64],
        settings: DataSettings | None,
        key: int,
    ) -> "Batch":
        return TextPairs().collate(corpus, dataset, numbers, settings, key)
