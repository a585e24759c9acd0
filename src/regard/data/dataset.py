"""A corpus on disk: texts and tokens of both sides, memory-mapped, with its validation set and its subwords."""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.data.kinds.base import DatasetKind
from regard.data.media import medium_for
from regard.data.placeholders import Protection, Treatment
from regard.data.preparation import prepare_files, silent
from regard.data.settings import FILES, DataSettings
from regard.data.tokenization import Report
from regard.data.tokenizers import load_tokenizer
from regard.data.vocabulary import SourceSide, Vocabulary
from regard.errors import RegardError
from regard.models.settings import SourceSettings, TextSource


@dataclass(frozen=True)
class Corpus:
    """What training needs: examples to learn from, examples to judge by, and the subwords of both sides."""

    kind: DatasetKind
    train: Any
    valid: Any
    source_side: SourceSide
    target_side: Vocabulary
    rejected: dict[str, int]
    fingerprint: str
    treatments: dict[str, Treatment]  # of placeholders, by kind
    reads: SourceSettings

    @cached_property
    def protection(self) -> Protection:
        """What keeps the placeholders of this corpus."""
        return Protection(self.treatments)


def fingerprint(settings: DataSettings, source: SourceSettings) -> str:
    """A hash of the settings and of the files' sizes and times: whether a prepared corpus still fits."""
    state = hashlib.sha256(settings.model_dump_json().encode())
    if source != TextSource():
        state.update(source.model_dump_json(exclude={"stem", "channels", "subsampling"}).encode())
    known = [each for each in (settings.source_vocabulary, settings.target_vocabulary) if each is not None]
    for path in (*known, *(path for name in FILES for path in getattr(settings, name))):
        try:
            about = path.stat()
        except OSError:
            raise RegardError(f"{path}: there is no such file.") from None
        state.update(f"{path.resolve()} {about.st_size} {about.st_mtime_ns}".encode())
    return state.hexdigest()[:20]


def prepare(
    settings: DataSettings, folder: Path, *, kind: DatasetKind, source: SourceSettings, report: Report = silent
) -> Corpus:
    """The corpus of these settings in `folder`: opened if it is there and still fits, else prepared."""
    if not (settings.pairs or settings.source or settings.target or settings.text):
        raise RegardError("there is nothing to train on; name files, as in: regard train pairs.tsv")
    mark = fingerprint(settings, source)
    if _mark_of(folder) != mark:
        beside = folder.with_name(folder.name + ".making")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        prepare_files(settings, beside, mark, report, kind=kind, source=source)
        (folder / "corpus.json").unlink(missing_ok=True)  # first: a half removed folder must not pass for a whole one
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(beside, folder)
    return _open(folder, kind, source)


def reopen(folder: Path, *, kind: DatasetKind, source: SourceSettings) -> Corpus | None:
    """A corpus that was prepared here before, whatever has become of its files since; None if there is no whole one."""
    return _open(folder, kind, source) if _mark_of(folder) is not None else None


def _mark_of(folder: Path) -> str | None:
    try:
        return str(json.loads((folder / "corpus.json").read_text())["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _open(folder: Path, kind: DatasetKind, source: SourceSettings) -> Corpus:
    about = json.loads((folder / "corpus.json").read_text())
    valid = "valid" if about["own_valid"] else "train"
    max_tokens = about.get("longest") or 0  # of documents, how much of one is read at once
    train = kind.open(folder, "train", "train", source, max_tokens)
    validation = kind.open(folder, valid, "valid", source, max_tokens)
    tokenizer_or_medium = medium_for(source) or load_tokenizer(folder / "source.subwords")
    return Corpus(
        kind,
        train,
        validation,
        tokenizer_or_medium,
        kind.load_target(folder / kind.target_file),
        about.get("rejected", about.get("set_aside", {})),
        about["fingerprint"],
        about.get("placeholders", {}),  # which older ones do not have
        source,
    )
