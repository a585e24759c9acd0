"""Preparation of a corpus, in passes of which none holds the data in memory.

Texts are validated and stored, subwords are learned from a sample, texts are tokenized. The validation set is chosen by
a hash of the source, so it does not depend on the order of the files, and no source is in both sets.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.dataset_kinds.base import DatasetKind
from regard.data.example import Example
from regard.data.input_validation import RATIO_SMOOTHING, RejectedExamples, read_examples, valid_examples
from regard.data.media.base import media_processor
from regard.data.media_store import MediaWriter
from regard.data.placeholders import KINDS, SYMBOLS, TEXT, PlaceholderStatistics, Protection, Treatment
from regard.data.ragged_array import Ragged, RaggedWriter
from regard.data.settings import LANGUAGE_TOKEN, DataSettings
from regard.data.split import select_validation, source_hash
from regard.data.tokenization import REPORT_EVERY, Origins, Report, StoredTexts, Tokenization
from regard.data.tokenizers import load_tokenizer
from regard.data.tokenizers.sentencepiece_tokenizer import train_tokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.data.vocabulary import Vocabulary
from regard.errors import RegardError
from regard.models.settings import SourceSettings
from regard.special_tokens import SEPARATOR_CHARACTER

# What subwords are learned from, at most, on each side: sentencepiece holds all of it in memory, many times over.
SAMPLED_LINES, SAMPLED_BYTES = 500_000, 50_000_000
BYTES_PER_EXAMPLE = 60  # of plain text, to choose a vocabulary size


def no_report(what: str, done: int, total: int | None) -> None:
    """Report no progress."""


def prepare_files(
    settings: DataSettings, folder: Path, fingerprint: str, report: Report, *, kind: DatasetKind, source: SourceSettings
) -> None:
    """Write all files of a corpus into a new folder."""
    own_valid = any((settings.valid_pairs, settings.valid_source, settings.valid_target, settings.valid_text))
    parallel = kind.has_parallel_texts(source)
    with RejectedExamples(folder / "rejected.jsonl") as rejected:
        job = _Preparation(settings, kind, source, folder, rejected, report)
        origins = {"train": Origins()}
        hashes = job.read("train", origins)
        if not len(hashes):
            raise RegardError(_nothing_left("training", rejected))
        if own_valid:
            valid_hashes = job.read("valid", origins)
            if not len(valid_hashes):
                raise RegardError(_nothing_left("validation", rejected))
        usable = np.ones(len(hashes), bool)
        if parallel and not settings.truncate:  # an answer is short, however long its passage is
            usable = _usual_length_ratios(folder, settings, origins["train"], rejected)
        protects = settings.placeholders and parallel
        treatments = _placeholder_treatments(folder, usable) if protects else dict.fromkeys(KINDS, TEXT)
        protection = Protection(treatments)
        usable &= _same_placeholders(folder, protection, origins["train"], rejected, usable)
        vocabularies = job.learn_vocabularies(usable, protection)
        for side, vocabulary in vocabularies.items():
            path = folder / ("source.subwords" if side == "source" else kind.target_file)
            path.write_bytes(vocabulary.model)
        tokenization = Tokenization(
            settings, source, folder, vocabularies, protection, rejected, report, kind.documents
        )
        usable &= kind.usable_examples(folder, "train", origins["train"], rejected, len(usable))
        tokenized = usable & kind.tokenize(tokenization, "train", origins["train"], usable)
        index = np.flatnonzero(tokenized)
        if not len(index):
            raise RegardError(_nothing_left("training", rejected))
        if own_valid:
            usable = kind.usable_examples(folder, "valid", origins["valid"], rejected, len(origins["valid"].lines))
            tokenized_valid = usable & kind.tokenize(tokenization, "valid", origins["valid"], usable)
            if not tokenized_valid.any():
                raise RegardError(_nothing_left("validation", rejected))
            np.save(folder / "valid.index.npy", np.flatnonzero(tokenized_valid))
            # A source of the validation set must not be trained on.
            leaking = np.isin(hashes[index], valid_hashes)
            for at in index[leaking]:
                rejected.add(origins["train"].example(folder, "train", int(at)), "its source is in the validation set")
            index = index[~leaking]
            if not len(index):
                raise RegardError("every training source is in the validation set too; nothing is left to learn from.")
        else:
            held_out = select_validation(hashes[index], settings.valid_size)
            np.save(folder / "valid.index.npy", index[held_out])
            index = index[~held_out]
        np.save(folder / "train.index.npy", index)
        metadata = {
            "fingerprint": fingerprint,
            "own_valid": own_valid,
            "rejected": dict(rejected.counts),
            "placeholders": treatments,
            "max_tokens": settings.max_tokens if kind.documents else None,
        }
    (folder / "corpus.json").write_text(json.dumps(metadata, indent=2))


def _nothing_left(what: str, rejected: RejectedExamples) -> str:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in rejected.counts.most_common())
    if not reasons:
        return f"there is not one {what} example in the files; are they empty?"
    return (
        f"no {what} example is left: all were rejected ({reasons}); what is too long is decided by data.max_tokens and "
        f"data.max_characters."
        if " over " in reasons
        else f"no {what} example is left: all were rejected ({reasons})."
    )


def _store(
    examples: Iterator[Example], folder: Path, name: str, origins: Origins, report: Report
) -> NDArray[np.uint64]:
    """Write the texts of all examples; returns the hashes of their sources."""
    hashes: list[NDArray[np.uint64]] = []
    some_hashes: list[int] = []
    lines: list[NDArray[np.int64]] = []
    some_lines: list[int] = []
    number = 0
    with (
        RaggedWriter(folder / f"{name}.source_text", np.uint8) as source,
        RaggedWriter(folder / f"{name}.target_text", np.uint8) as target,
    ):
        for number, example in enumerate(examples, 1):
            if not origins.files or origins.files[-1] != example.file:
                origins.files.append(example.file)
                origins.starts.append(number - 1)
            source.append(example.source.encode("utf-8", "replace"))
            target.append(example.target.encode("utf-8", "replace"))
            some_hashes.append(source_hash(example.source or example.target))
            some_lines.append(example.line)
            if number % REPORT_EVERY == 0:
                hashes.append(np.array(some_hashes, np.uint64))
                lines.append(np.array(some_lines, np.int64))
                some_hashes, some_lines = [], []
                report("reading", number, None)
    report("reading", number, number)
    origins.lines = np.concatenate([*lines, np.array(some_lines, np.int64)])
    return np.concatenate([*hashes, np.array(some_hashes, np.uint64)])


def _usual_length_ratios(
    folder: Path, settings: DataSettings, origins: Origins, rejected: RejectedExamples
) -> NDArray[np.bool_]:
    """False for examples whose ratio of lengths is far from the median of this corpus."""
    source, target = (Ragged(folder / f"train.{side}_text", np.uint8).lengths for side in ("source", "target"))
    ratio = np.log((source + RATIO_SMOOTHING) / (target + RATIO_SMOOTHING))
    usual: NDArray[np.bool_] = np.abs(ratio - np.median(ratio)) <= np.log(settings.unusual_ratio)
    for at in np.flatnonzero(~usual):
        rejected.add(origins.example(folder, "train", int(at)), "unusual ratio of lengths")
    return usual


def _placeholder_treatments(folder: Path, usable: NDArray[np.bool_]) -> dict[str, Treatment]:
    """How each kind of placeholder in the training examples is treated."""
    statistics = PlaceholderStatistics()
    texts = StoredTexts(folder, "train", Protection({}))
    for at in np.flatnonzero(usable):
        statistics.add(*texts.raw(int(at)))
    return statistics.treatments()


def _same_placeholders(
    folder: Path, protection: Protection, origins: Origins, rejected: RejectedExamples, usable: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """False for examples whose target has other placeholders than their source: they would teach to lose them."""
    same = np.ones(len(usable), bool)
    if protection.uses_symbols:
        texts = StoredTexts(folder, "train", protection)
        for at in np.flatnonzero(usable):
            if protection.protect_pair(*texts.raw(int(at))) is None:
                rejected.add(origins.example(folder, "train", int(at)), "other placeholders than its source")
                same[at] = False
    return same


@dataclass(frozen=True)
class _Preparation:
    """What the passes over the data have in common."""

    settings: DataSettings
    kind: DatasetKind
    source: SourceSettings
    folder: Path
    rejected: RejectedExamples
    report: Report

    def read(self, name: str, origins: dict[str, Origins]) -> NDArray[np.uint64]:
        """Validate and store the examples of the training or validation files; returns the hashes of their sources."""
        origins[name] = Origins()
        settings, kind = self.settings, self.kind
        medium = None if kind.documents else media_processor(self.source)
        examples = valid_examples(
            read_examples(settings, valid=name == "valid"),
            settings,
            self.rejected,
            labels=kind.keeps_case,
            file_names=medium is not None,
            allow_empty_target=kind.allows_empty,
        )
        if medium is not None:
            with MediaWriter(self.folder / f"{name}.source", medium, settings.media, self.rejected) as writer:
                stored = _store(writer.readable_examples(examples), self.folder, name, origins[name], self.report)
            return writer.hashes if len(stored) else stored
        examples = kind.store_annotations(examples, self.folder, name, settings)
        return _store(examples, self.folder, name, origins[name], self.report)

    def learn_vocabularies(self, usable: NDArray[np.bool_], protection: Protection) -> dict[str, Vocabulary]:
        """The vocabularies of source and target; media have none."""
        self.report("learning subwords", 0, None)
        settings, kind = self.settings, self.kind
        count = int(usable.sum())
        numbers = np.flatnonzero(usable)
        byte_lengths = [
            Ragged(self.folder / f"train.{side}_text", np.uint8).lengths[numbers] for side in ("source", "target")
        ]
        byte_count = max(int(lengths.sum(dtype=np.int64)) for lengths in byte_lengths)
        size = settings.subwords.size or vocabulary_size(byte_count // BYTES_PER_EXAMPLE if kind.documents else count)
        numbers = numbers[:: max(1, -(-count // SAMPLED_LINES), -(-byte_count // SAMPLED_BYTES))]
        texts = StoredTexts(self.folder, "train", protection)
        languages = tuple(LANGUAGE_TOKEN.format(language) for language in settings.target_languages)
        symbols = (*kind.symbols(), *languages, *(SYMBOLS if protection.uses_symbols else ()))

        def lines(*columns: str) -> Iterator[str]:
            for column in columns:
                yield from (texts.side(int(at), column).replace(SEPARATOR_CHARACTER, " ") for at in numbers)

        def tokenizer(path: Path | None, *columns: str) -> SubwordTokenizer:
            if path is None:
                return train_tokenizer(lines(*columns), settings.subwords, size, symbols)
            loaded = load_tokenizer(path)
            for symbol in symbols:
                if loaded.token(symbol) is None:
                    raise RegardError(
                        f"{path}: this vocabulary has no entry for what these data need; learn one instead."
                    )
            return loaded

        if joint := kind.joint_vocabulary_texts(settings, self.source):
            shared = tokenizer(settings.source_vocabulary, *joint)
            return {"source": shared, "target": shared}
        vocabularies: dict[str, Vocabulary] = {}
        if self.source.is_text:
            vocabularies["source"] = tokenizer(settings.source_vocabulary, "source")
        target = kind.build_target_vocabulary(texts.side(int(at), "target") for at in np.flatnonzero(usable))
        vocabularies["target"] = tokenizer(settings.target_vocabulary, "target") if target is None else target
        return vocabularies


def vocabulary_size(examples_count: int) -> int:
    """The default vocabulary size for a number of examples: rare subwords of small data are never learned well."""
    for max_examples, size in ((2_000, 1_000), (10_000, 2_000), (100_000, 4_000), (1_000_000, 16_000)):
        if examples_count <= max_examples:
            return size
    return 32_000
