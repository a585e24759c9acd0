"""A prepared corpus on disk: texts and tokens, memory-mapped, its validation set and its vocabularies."""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.data.dataset_kinds.base import DatasetKind
from regard.data.media.base import media_processor
from regard.data.placeholders import Protection, Treatment
from regard.data.preparation import no_report, prepare_files
from regard.data.settings import FILES, DataSettings
from regard.data.targets.base import Target
from regard.data.tokenization import Report
from regard.data.tokenizers import load_tokenizer
from regard.data.vocabulary import SourceProcessor, Vocabulary, as_vocabulary
from regard.errors import RegardError
from regard.models.settings import SourceSettings, TextSource


@dataclass(frozen=True)
class Corpus:
    """What training needs: training and validation examples, and what encodes sources and targets."""

    kind: DatasetKind
    train: Any
    valid: Any
    source_processor: SourceProcessor
    target: Target
    rejected: dict[str, int]
    fingerprint: str
    treatments: dict[str, Treatment]  # of placeholders, by kind
    source_settings: SourceSettings
    notes: tuple[str, ...] = ()  # what was changed while it was prepared

    @property
    def target_vocabulary(self) -> Vocabulary:
        """The target as tokens. Raises RegardError for a model that predicts none."""
        return as_vocabulary(self.target)

    @cached_property
    def protection(self) -> Protection:
        """Replaces placeholders by symbols as in this corpus."""
        return Protection(self.treatments)


def fingerprint(settings: DataSettings, source: SourceSettings) -> str:
    """A hash of the settings and of the files' sizes and times: a prepared corpus is reused while it is the same."""
    digest = hashlib.sha256(settings.model_dump_json().encode())
    if source != TextSource():
        digest.update(source.model_dump_json(exclude={"stem", "channels", "subsampling"}).encode())
    vocabularies = [each for each in (settings.source_vocabulary, settings.target_vocabulary) if each is not None]
    for path in (*vocabularies, *(path for name in FILES for path in getattr(settings, name))):
        try:
            status = path.stat()
        except OSError:
            raise RegardError(f"{path}: there is no such file.") from None
        digest.update(f"{path.resolve()} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()[:20]


def prepare(
    settings: DataSettings, folder: Path, *, kind: DatasetKind, source: SourceSettings, report: Report = no_report
) -> Corpus:
    """The corpus of these settings in `folder`: opened if its fingerprint is the same, else prepared."""
    if not (settings.pairs or settings.source or settings.target or settings.text):
        raise RegardError("there is nothing to train on; name files, as in: regard train pairs.tsv")
    current = fingerprint(settings, source)
    if _stored_fingerprint(folder) != current:
        temporary = folder.with_name(folder.name + ".tmp")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        if not kind.prepare(settings, temporary, current, source):
            prepare_files(settings, temporary, current, report, kind=kind, source=source)
        (folder / "corpus.json").unlink(missing_ok=True)  # first: a half removed folder must not pass for a whole one
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(temporary, folder)
    return _open(folder, kind, source)


def reopen(folder: Path, *, kind: DatasetKind, source: SourceSettings) -> Corpus | None:
    """The corpus that was prepared in `folder`, even if its files have changed since; None if it is incomplete."""
    return _open(folder, kind, source) if _stored_fingerprint(folder) is not None else None


def _stored_fingerprint(folder: Path) -> str | None:
    try:
        return str(json.loads((folder / "corpus.json").read_text())["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _open(folder: Path, kind: DatasetKind, source: SourceSettings) -> Corpus:
    metadata = json.loads((folder / "corpus.json").read_text())
    valid = "valid" if metadata["own_valid"] else "train"
    max_tokens = metadata.get("max_tokens", metadata.get("longest")) or 0  # in a passage of a document
    train = kind.open(folder, "train", "train", source, max_tokens)
    validation = kind.open(folder, valid, "valid", source, max_tokens)
    tokenizer_or_medium = media_processor(source) or load_tokenizer(folder / "source.subwords")
    return Corpus(
        kind,
        train,
        validation,
        tokenizer_or_medium,
        kind.load_target(folder / kind.target_file),
        metadata.get("rejected", metadata.get("set_aside", {})),
        metadata["fingerprint"],
        metadata.get("placeholders", {}),  # missing in older corpora
        source,
        tuple(metadata.get("notes", ())),
    )
