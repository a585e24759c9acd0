"""Plain text documents: to predict the next token of (causal), or the masked tokens of."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.data.dataset_kinds.base import DatasetKind, Prompt
from regard.data.example import Example
from regard.data.ragged_array import Ragged
from regard.data.segments import has_segments
from regard.data.settings import DataSettings
from regard.data.targets.base import Target
from regard.data.tokenizers import load_tokenizer
from regard.data.vocabulary import Vocabulary
from regard.models.settings import SourceSettings
from regard.special_tokens import MASK_CHARACTER

if TYPE_CHECKING:
    from regard.data.batch import Batch
    from regard.data.corpus import Corpus

PROMPT_WORDS = 8  # of a document that a language model is to continue at validation


class _Documents(DatasetKind):
    """Documents, packed into rows as long as the model reads."""

    documents = True
    has_pairs = False
    target_file = "target.subwords"
    has_eos = True
    keeps_case = False

    def store_annotations(
        self, examples: Iterator[Example], folder: Path, name: str, settings: DataSettings
    ) -> Iterator[Example]:
        for example in examples:
            yield self._one_side(example)

    @abstractmethod
    def _one_side(self, example: Example) -> Example:
        """The text, stored once: as source or as target."""

    def build_target_vocabulary(self, texts: Iterable[str]) -> Vocabulary | None:
        return None

    def load_target(self, path: Path) -> Target:
        return load_tokenizer(path)

    def plan(self, dataset: Any, *, tokens: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        from regard.data.packing import plan_packed_batches

        lengths = dataset.target_lengths
        return plan_packed_batches(lengths, row_length=dataset.max_tokens, tokens=tokens, seed=seed, epoch=epoch)


class CausalDocuments(_Documents):
    """Each token is predicted from those before it."""

    def _one_side(self, example: Example) -> Example:
        return replace(example, source="")

    def open(self, folder: Path, name: str, index: str, source: SourceSettings, max_tokens: int) -> Any:
        from regard.data.packing import Passages

        return Passages.from_documents(*_files(folder, name, "target", index), max_tokens)

    def collate(
        self, corpus: "Corpus", dataset: Any, numbers: NDArray[np.int64], settings: DataSettings | None, key: int
    ) -> "Batch":
        from regard.data.batch import Batch, collate_sources
        from regard.data.packing import pack_sequences

        sequences = [dataset.inputs_and_labels(int(number)) for number in numbers]
        rows = pack_sequences(sequences, dataset.max_tokens)
        source = collate_sources(corpus.source_processor, list(rows.inputs))
        return Batch(*source, rows.inputs, rows.labels, numbers, rows.document, rows.position)

    def prompt(self, dataset: Any, number: int) -> Prompt:
        words = dataset.text(number).split()
        start = " ".join(words[: min(PROMPT_WORDS, len(words) // 2)])
        return Prompt(start, " ".join(words[: 3 * PROMPT_WORDS]), start)


class MaskedDocuments(_Documents):
    """Masked tokens are predicted from all others (BERT)."""

    def _one_side(self, example: Example) -> Example:
        return replace(example, target="")

    def joint_vocabulary_texts(self, settings: DataSettings, source: SourceSettings) -> tuple[str, ...]:
        return ("source",)

    def symbols(self) -> tuple[str, ...]:
        return (MASK_CHARACTER,)

    def open(self, folder: Path, name: str, index: str, source: SourceSettings, max_tokens: int) -> Any:
        from regard.data.masking import MaskedPassages

        tokenizer = load_tokenizer(folder / "source.subwords")
        stored = _files(folder, name, "source", index)
        return MaskedPassages.build(*stored, max_tokens, tokenizer, pairs=has_segments(source))

    def collate(
        self, corpus: "Corpus", dataset: Any, numbers: NDArray[np.int64], settings: DataSettings | None, key: int
    ) -> "Batch":
        from regard.data.batch import Batch
        from regard.data.masking import mask_passages
        from regard.special_tokens import PAD

        seed = key if settings is not None else int(numbers[0])
        masked = mask_passages(dataset, numbers.tolist(), (settings or DataSettings()).mask, seed)
        next_sentence = masked.next_sentence if dataset.segments == 2 else None
        packing = masked.document, masked.position
        inputs = masked.inputs
        return Batch(inputs, inputs != PAD, inputs, masked.labels, numbers, *packing, next_sentence)

    def prompt(self, dataset: Any, number: int) -> Prompt:
        words = dataset.text(number).split()[: 3 * PROMPT_WORDS]
        middle = len(words) // 2
        masked = " ".join([*words[:middle], "___", *words[middle + 1 :]])
        return Prompt(masked, " ".join(words), masked)


def _files(folder: Path, name: str, side: str, index: str) -> tuple[Ragged, Ragged, NDArray[np.int64]]:
    """Tokens, texts and the index of stored documents."""
    dtype = np.uint16 if (folder / f"{name}.narrow").exists() else np.int32
    numbers = np.load(folder / f"{index}.index.npy", mmap_mode="r")
    return Ragged(folder / f"{name}.{side}", dtype), Ragged(folder / f"{name}.{side}_text", np.uint8), numbers
