"""The interface of dataset kinds. A task names one; preparation, batching and validation call its methods.

Importing a kind imports no PyTorch.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.data.batch_plan import plan_epoch
from regard.data.example import Example, Layout
from regard.data.input_validation import RejectedExamples
from regard.data.media.base import MediaProcessor
from regard.data.pair_dataset import PairDataset
from regard.data.ragged_array import Ragged
from regard.data.settings import DataSettings
from regard.data.targets.base import Target
from regard.data.targets.labels import Labels
from regard.data.task_columns import describe_columns
from regard.data.tokenization import Origins, Tokenization
from regard.data.vocabulary import Vocabulary
from regard.models.settings import SourceSettings

if TYPE_CHECKING:
    from regard.data.batch import Batch
    from regard.data.corpus import Corpus


class Prompt(NamedTuple):
    """A validation example as the input of a predictor."""

    source: str  # as a person reads it
    reference: str
    predictor_input: Any
    language: str = ""  # the target language, for a model with several


class DatasetKind(ABC):
    """How the examples of a task are stored, tokenized and batched.

    documents: examples are plain texts, not pairs. has_pairs: its datasets are of pairs (`PairDataset`). reads_series:
    tables, by the settings in `data.series`. target_file:
    the target's file in a run. has_eos: targets end with the end-of-sequence token. keeps_case: targets are never
    lowercased. allows_empty: a target may be empty.
    """

    documents: ClassVar[bool] = False
    has_pairs: ClassVar[bool] = True
    reads_series: ClassVar[bool] = False
    target_file: ClassVar[str] = "target.labels"
    has_eos: ClassVar[bool] = False
    keeps_case: ClassVar[bool] = True
    allows_empty: ClassVar[bool] = False

    # --- preparing -------------------------------------------------------------------------------------------------

    def prepare(self, settings: DataSettings, folder: Path, fingerprint: str, source: SourceSettings) -> bool:
        """Write all files of a corpus. False if it is prepared example by example, by the methods below."""
        return False

    def has_parallel_texts(self, source: SourceSettings) -> bool:
        """Whether source and target are texts that have about the same length and placeholders."""
        return False

    def store_annotations(
        self, examples: Iterator[Example], folder: Path, name: str, settings: DataSettings
    ) -> Iterator[Example]:
        """The same examples; data besides their texts is stored on the way."""
        return examples

    def usable_examples(
        self, folder: Path, name: str, origins: Origins, rejected: RejectedExamples, count: int
    ) -> NDArray[np.bool_]:
        """False for stored examples that cannot be used."""
        return np.ones(count, bool)

    def joint_vocabulary_texts(self, settings: DataSettings, source: SourceSettings) -> tuple[str, ...]:
        """The texts (source, target or both) that a joint vocabulary is learned from; none if each has its own."""
        return ()

    def symbols(self) -> tuple[str, ...]:
        """Characters that are tokens by themselves."""
        return ()

    def build_target_vocabulary(self, texts: Iterable[str]) -> Vocabulary | None:
        """The target vocabulary of these targets; None if it is a tokenizer, which is trained."""
        return None

    def target_vocabulary_from_labels(self, labels: Sequence[str], tokenizer: Vocabulary) -> Vocabulary:
        """The target vocabulary of an imported model with these labels; its tokenizer if it has none."""
        return tokenizer

    @abstractmethod
    def load_target(self, path: Path) -> Target:
        """The target vocabulary from its file. Raises RegardError."""

    def tokenize(
        self, job: Tokenization, name: str, origins: Origins, selected: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Write the tokens of the selected examples; False for those that are rejected on the way."""
        usable = np.ones(len(origins.lines), bool)
        for side in job.vocabularies:
            job.encode_side(name, side, origins, selected, usable)
        return usable

    # --- reading ---------------------------------------------------------------------------------------------------

    def open(self, folder: Path, name: str, index: str, source: SourceSettings, max_tokens: int) -> Any:
        """The stored examples that `index` lists."""
        return open_pairs(folder, name, index, source, has_eos=self.has_eos)

    def plan(self, dataset: Any, *, tokens: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """Example numbers of each batch of an epoch."""
        lengths = dataset.source_lengths, dataset.target_lengths
        return plan_epoch(*lengths, tokens=tokens, seed=seed, epoch=epoch)

    @abstractmethod
    def collate(
        self, corpus: "Corpus", dataset: Any, numbers: NDArray[np.int64], settings: DataSettings | None, key: int
    ) -> "Batch":
        """The examples of these numbers as tensors. settings: in training, how they are varied at random."""

    def describe_columns(self, path: Path, layout: Layout) -> str:
        """A sentence on which columns of a table are read, if that is not obvious; else empty."""
        return describe_columns(path, layout)

    def prompt(self, dataset: Any, number: int) -> Prompt:
        """A validation example as the input of a predictor."""
        source, reference = dataset.texts(number)
        return Prompt(source, reference, dataset.predictor_input(number))


def load_labels(path: Path, kind: type[Labels]) -> Labels:
    """Labels of this kind from a file. Raises RegardError for other kinds."""
    from regard.errors import RegardError

    labels = Labels.load(path)
    if type(labels) is not kind:
        raise RegardError(f"{path}: it has {labels.plural_name}, and this model needs {kind.plural_name}.")
    return labels


def open_pairs(folder: Path, name: str, index: str, source: SourceSettings, *, has_eos: bool) -> PairDataset:
    """The pairs that preparation stored."""
    from regard.data.media.base import media_processor

    medium: MediaProcessor | None = None if source.is_text else media_processor(source)
    dtype = np.uint16 if (folder / f"{name}.narrow").exists() else np.int32
    tokens = Ragged(folder / f"{name}.source", dtype if medium is None else medium.dtype)
    source_rows = None if medium is None else np.load(folder / f"{name}.source.rows.npy", mmap_mode="r")
    target = Ragged(folder / f"{name}.target", dtype)
    texts = [Ragged(folder / f"{name}.{side}_text", np.uint8) for side in ("source", "target")]
    numbers = np.load(folder / f"{index}.index.npy", mmap_mode="r")
    has_links = index == "train" and (folder / f"{name}.links.bin").exists()
    links = Ragged(folder / f"{name}.links", np.int32) if has_links else None
    first_tokens = Ragged(folder / f"{name}.firsts", np.int32) if (folder / f"{name}.firsts.bin").exists() else None
    return PairDataset(
        tokens, target, texts[0], texts[1], numbers, links, medium, source_rows, has_eos, source, first_tokens
    )


def target_sequences(dataset: PairDataset, numbers: Sequence[int]) -> tuple[list[Any], list[list[int]]]:
    """Sources and targets of these examples, as tokens or arrays."""
    pairs = [dataset.tokens(number) for number in numbers]
    return [source for source, _ in pairs], [target for _, target in pairs]
