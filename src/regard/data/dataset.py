"""A corpus on disk: texts and tokens of both sides, memory-mapped, with its validation set and its subwords."""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.masking import Masked
from regard.data.media import Medium, medium_of
from regard.data.packing import Passages
from regard.data.placeholders import Protection, Treatment
from regard.data.preparation import make, silent
from regard.data.ragged_array import Ragged, decode_text
from regard.data.segments import framed, has_parts
from regard.data.settings import FILES, DataSettings
from regard.data.tokenization import Report
from regard.data.tokenizers import load_tokenizer
from regard.data.vocabulary import Given, SourceSide, Vocabulary, load_target
from regard.errors import RegardError
from regard.sources import Says, Source, Text
from regard.special_tokens import BEGIN, END, PAD


@dataclass(frozen=True)
class Pairs:
    """Examples by number: their tokens and their texts."""

    source: Ragged  # tokens, or the elements of pictures and recordings
    target: Ragged
    source_text: Ragged
    target_text: Ragged
    index: NDArray[np.int64]  # which of the stored examples these are
    linked: Ragged | None = None  # source and target words that belong together, in turns
    medium: Medium | None = None  # what the sources are, if they are no text
    rows: NDArray[np.int64] | None = None  # which of the stored sources each of the stored examples has
    ends: bool = True  # whether targets have an end
    reads: Source = field(default_factory=Text)
    firsts: Ragged | None = None  # of texts whose words are tagged, the place of each word's first token

    def __len__(self) -> int:
        return len(self.index)

    @property
    def source_lengths(self) -> NDArray[np.int32]:
        """In tokens, the end's mark included; of what is no text, in places about."""
        if self.medium is not None and self.rows is not None:
            return self.medium.places(self.source.lengths[self.rows[self.index]])
        return self.source.lengths[self.index] + len(framed([], self.reads))

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        """In tokens, the end's mark included."""
        return self.target.lengths[self.index] + self.ends

    def origin(self, number: int) -> int:
        """Which of the stored examples this is."""
        return int(self.index[number])

    def text(self, number: int) -> str:
        """The source as it was read."""
        return self.texts(number)[0]

    def texts(self, number: int) -> tuple[str, str]:
        """Source and target as they were read."""
        at = int(self.index[number])
        return decode_text(self.source_text[at]), decode_text(self.target_text[at])

    def tokens(self, number: int) -> tuple[Given, list[int]]:
        """What the model reads and what it says: tokens, each with its end, or an array."""
        at = int(self.index[number])
        target = [*map(int, self.target[at]), *([END] if self.ends else [])]
        if self.medium is not None and self.rows is not None:
            return self.medium.shaped(self.source[int(self.rows[at])]), target
        return framed([*map(int, self.source[at])], self.reads), target

    def tagged(self, number: int) -> list[int]:
        """What is to be said at each place of the source: a tag where a word begins, PAD elsewhere."""
        assert self.firsts is not None
        source, tags = self.tokens(number)
        before = int(source[0] == BEGIN)
        said = [PAD] * len(source)
        for place, tag in zip(self.firsts[int(self.index[number])].tolist(), tags, strict=True):
            said[place + before] = tag
        return said

    def links(self, number: int) -> NDArray[np.int64]:
        """[N, 2]: source and target words that belong together, from 0."""
        found = np.zeros(0) if self.linked is None else self.linked[int(self.index[number])]
        return found.astype(np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class Corpus:
    """What training needs: examples to learn from, examples to judge by, and the subwords of both sides."""

    train: Pairs | Passages
    valid: Pairs | Passages
    source_side: SourceSide
    target_side: Vocabulary
    set_aside: dict[str, int]
    fingerprint: str
    treatments: dict[str, Treatment]  # of placeholders, by kind
    reads: Source = field(default_factory=Text)

    @cached_property
    def protection(self) -> Protection:
        """What keeps the placeholders of this corpus."""
        return Protection(self.treatments)


def fingerprint(settings: DataSettings, source: Source | None = None) -> str:
    """A hash of the settings and of the files' sizes and times: whether a prepared corpus still fits."""
    state = hashlib.sha256(settings.model_dump_json().encode())
    if source is not None and source != Text():
        state.update(source.model_dump_json(exclude={"cut", "channels", "subsample"}).encode())
    known = [each for each in (settings.source_vocabulary, settings.target_vocabulary) if each is not None]
    for path in (*known, *(path for name in FILES for path in getattr(settings, name))):
        try:
            about = path.stat()
        except OSError:
            raise RegardError(f"{path}: there is no such file.") from None
        state.update(f"{path.resolve()} {about.st_size} {about.st_mtime_ns}".encode())
    return state.hexdigest()[:20]


def prepare(
    settings: DataSettings,
    folder: Path,
    *,
    source: Source | None = None,
    says: Says = "text",
    report: Report = silent,
) -> Corpus:
    """The corpus of these settings in `folder`: opened if it is there and still fits, else made.

    source: what is read, text if not given. says: what targets are.
    """
    if not (settings.pairs or settings.source or settings.target or settings.text):
        raise RegardError("there is nothing to train on; name files, as in: regard train pairs.tsv")
    mark = fingerprint(settings, source)
    if _mark_of(folder) != mark:
        beside = folder.with_name(folder.name + ".making")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        make(settings, beside, mark, report, source=source, says=says)
        (folder / "corpus.json").unlink(missing_ok=True)  # first: what is half removed must not pass for whole
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(beside, folder)
    return _open(folder, source, says)


def reopened(folder: Path, *, source: Source | None = None, says: Says = "text") -> Corpus | None:
    """A corpus that was made here before, whatever has become of its files since; None if there is no whole one."""
    return _open(folder, source, says) if _mark_of(folder) is not None else None


def _mark_of(folder: Path) -> str | None:
    try:
        return str(json.loads((folder / "corpus.json").read_text())["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _open(folder: Path, source: Source | None, says: Says) -> Corpus:
    about = json.loads((folder / "corpus.json").read_text())
    medium = medium_of(source or Text())
    valid = "valid" if about["own_valid"] else "train"
    longest = about.get("longest")  # of plain text, how much of it is read at once
    train: Pairs | Passages
    judged: Pairs | Passages
    if longest:
        of = source or Text()
        train, judged = (_passages(folder, *each, longest, of) for each in (("train", "train"), (valid, "valid")))
    else:
        train = _pairs(folder, "train", source or Text(), says == "text")
        judged = _pairs(folder, valid, source or Text(), says == "text", "valid")
    return Corpus(
        train,
        judged,
        medium or load_tokenizer(folder / "source.subwords"),
        load_target(folder, says),
        about["set_aside"],
        about["fingerprint"],
        about.get("placeholders", {}),  # which those made before there were any have not
        source or Text(),
    )


def _passages(folder: Path, name: str, index: str, longest: int, source: Source) -> Passages:
    kind = np.uint16 if (folder / f"{name}.narrow").exists() else np.int32
    numbers = np.load(folder / f"{index}.index.npy", mmap_mode="r")
    side = "source" if source.kind == "text" else "target"
    files = Ragged(folder / f"{name}.{side}", kind), Ragged(folder / f"{name}.{side}_text", np.uint8)
    if isinstance(source, Text):
        subwords = load_tokenizer(folder / "source.subwords")
        return Masked.within(*files, numbers, longest, subwords, pairs=has_parts(source))
    return Passages.of(*files, numbers, longest)


def _pairs(folder: Path, name: str, reads: Source, ends: bool, index: str | None = None) -> Pairs:
    medium = medium_of(reads)
    kind = np.uint16 if (folder / f"{name}.narrow").exists() else np.int32
    source = Ragged(folder / f"{name}.source", kind if medium is None else medium.element)
    rows = None if medium is None else np.load(folder / f"{name}.source.rows.npy", mmap_mode="r")
    target = Ragged(folder / f"{name}.target", kind)
    source_text, target_text = (Ragged(folder / f"{name}.{side}_text", np.uint8) for side in ("source", "target"))
    numbers = np.load(folder / f"{index or name}.index.npy", mmap_mode="r")
    learns = index is None and (folder / f"{name}.links.bin").exists()
    linked = Ragged(folder / f"{name}.links", np.int32) if learns else None
    firsts = Ragged(folder / f"{name}.firsts", np.int32) if (folder / f"{name}.firsts.bin").exists() else None
    return Pairs(source, target, source_text, target_text, numbers, linked, medium, rows, ends, reads, firsts)
