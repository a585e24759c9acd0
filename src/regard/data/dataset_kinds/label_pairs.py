"""Pairs whose target is a class."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.data.dataset_kinds.base import DatasetKind, load_labels
from regard.data.dataset_kinds.text_pairs import TextPairs
from regard.data.pair_dataset import PairDataset
from regard.data.settings import DataSettings
from regard.data.targets.base import Target
from regard.data.targets.labels import Labels
from regard.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    from regard.data.batch import Batch
    from regard.data.corpus import Corpus


class LabelPairs(DatasetKind):
    """Sources of any modality, each with one label."""

    def build_target_vocabulary(self, texts: Iterable[str]) -> Vocabulary | None:
        return Labels.from_targets(texts)

    def target_vocabulary_from_labels(self, labels: Sequence[str], tokenizer: Vocabulary) -> Vocabulary:
        return Labels(labels)

    def load_target(self, path: Path) -> Target:
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
