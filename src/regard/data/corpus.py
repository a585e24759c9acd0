"""A corpus on disk: texts and tokens of both sides, memory-mapped, with its validation set and its subwords.

Made in three passes, none of which holds the data: texts are checked and stored, subwords are learnt from a sample,
texts are cut into tokens. What is held out is chosen by a hash of the source, so it does not depend on the order of the
files, and one source never stands on both sides.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.door import SMOOTHING, SetAside, admitted, examples
from regard.data.ragged import Ragged, RaggedWriter
from regard.data.readers import Example
from regard.data.settings import DataSettings
from regard.data.subwords import Subwords, train
from regard.tokens import END

SAMPLED_LINES = 1_000_000  # texts that subwords are learnt from, at most, on each side
LARGEST_VALID = 2_000
CUT_AT_ONCE = 10_000

Report = Callable[[str, int, int | None], None]  # what is being done, how many are done, of how many if known


def silent(what: str, done: int, total: int | None) -> None:
    """Report to nobody."""


@dataclass(frozen=True)
class Pairs:
    """Examples by number: their tokens and their texts."""

    source: Ragged
    target: Ragged
    source_text: Ragged
    target_text: Ragged
    index: NDArray[np.int64]  # which of the stored examples these are

    def __len__(self) -> int:
        return len(self.index)

    @property
    def source_lengths(self) -> NDArray[np.int32]:
        """In tokens, the end's mark included."""
        return self.source.lengths[self.index] + 1

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        """In tokens, the end's mark included."""
        return self.target.lengths[self.index] + 1

    def texts(self, number: int) -> tuple[str, str]:
        """Source and target as they were read."""
        at = int(self.index[number])
        return _text(self.source_text[at]), _text(self.target_text[at])

    def tokens(self, number: int) -> tuple[list[int], list[int]]:
        """Source and target tokens, each with its end."""
        at = int(self.index[number])
        return [*map(int, self.source[at]), END], [*map(int, self.target[at]), END]


@dataclass(frozen=True)
class Corpus:
    """What training needs: examples to learn from, examples to judge by, and the subwords of both sides."""

    train: Pairs
    valid: Pairs
    source_subwords: Subwords
    target_subwords: Subwords
    set_aside: dict[str, int]
    fingerprint: str


def _text(raw: NDArray[np.generic]) -> str:
    return raw.tobytes().decode("utf-8")


def fingerprint(settings: DataSettings) -> str:
    """A hash of the settings and of the files' sizes and times: whether a prepared corpus still fits."""
    state = hashlib.sha256(settings.model_dump_json().encode())
    for path in [
        *settings.pairs,
        *settings.source,
        *settings.target,
        *settings.valid_pairs,
        *settings.valid_source,
        *settings.valid_target,
    ]:
        try:
            about = path.stat()
        except OSError:
            raise ValueError(f"{path}: there is no such file.") from None
        state.update(f"{path.resolve()} {about.st_size} {about.st_mtime_ns}".encode())
    return state.hexdigest()[:20]


def prepare(settings: DataSettings, folder: Path, *, report: Report = silent) -> Corpus:
    """The corpus of these settings in `folder`: opened if it is there and still fits, else made."""
    if not (settings.pairs or settings.source or settings.target):
        raise ValueError("there is nothing to train on; name files, as in: regard train pairs.tsv")
    mark = fingerprint(settings)
    if _mark_of(folder) != mark:
        beside = folder.with_name(folder.name + ".making")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        _make(settings, beside, mark, report)
        (folder / "corpus.json").unlink(missing_ok=True)  # first: what is half removed must not pass for whole
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(beside, folder)
    return _open(folder)


def reopened(folder: Path) -> Corpus | None:
    """A corpus that was made here before, whatever has become of its files since; None if there is no whole one."""
    return _open(folder) if _mark_of(folder) is not None else None


def _mark_of(folder: Path) -> str | None:
    try:
        return str(json.loads((folder / "corpus.json").read_text())["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _open(folder: Path) -> Corpus:
    about = json.loads((folder / "corpus.json").read_text())
    return Corpus(
        _pairs(folder, "train"),
        _pairs(folder, "valid" if about["own_valid"] else "train", "valid"),
        Subwords.load(folder / "source.subwords"),
        Subwords.load(folder / "target.subwords"),
        about["set_aside"],
        about["fingerprint"],
    )


def _pairs(folder: Path, name: str, index: str | None = None) -> Pairs:
    kind = np.uint16 if (folder / f"{name}.narrow").exists() else np.int32
    source, target = (Ragged(folder / f"{name}.{side}", kind) for side in ("source", "target"))
    source_text, target_text = (Ragged(folder / f"{name}.{side}_text", np.uint8) for side in ("source", "target"))
    return Pairs(
        source, target, source_text, target_text, np.load(folder / f"{index or name}.index.npy", mmap_mode="r")
    )


def _make(settings: DataSettings, folder: Path, mark: str, report: Report) -> None:
    own_valid = bool(settings.valid_pairs or settings.valid_source or settings.valid_target)
    with SetAside(folder / "set_aside.jsonl") as aside:
        origins = {"train": _Origins()}
        hashes = _store(admitted(examples(settings), settings, aside), folder, "train", origins["train"], report)
        if not len(hashes):
            raise ValueError(_nothing_left("training", aside))
        if own_valid:
            origins["valid"] = _Origins()
            found = admitted(examples(settings, valid=True), settings, aside)
            if not len(_store(found, folder, "valid", origins["valid"], report)):
                raise ValueError(_nothing_left("validation", aside))
        usual = _usual_lengths(folder, settings, origins["train"], aside)
        subwords = _learn(settings, folder, usual, report)
        for side, vocabulary in subwords.items():
            vocabulary.save(folder / f"{side}.subwords")
        fit = usual & _cut(settings, folder, "train", subwords, origins["train"], aside, usual, report)
        index = np.flatnonzero(fit)
        if not len(index):
            raise ValueError(_nothing_left("training", aside))
        if own_valid:
            everything = np.ones(len(origins["valid"].lines), bool)
            fit_valid = _cut(settings, folder, "valid", subwords, origins["valid"], aside, everything, report)
            if not fit_valid.any():
                raise ValueError(_nothing_left("validation", aside))
            np.save(folder / "valid.index.npy", np.flatnonzero(fit_valid))
            # A source that is judged by must not be learnt from.
            judged = _source_hashes(folder, "valid")
            leaking = np.isin(hashes[index], judged)
            for at in index[leaking]:
                aside.put(origins["train"].example(folder, "train", int(at)), "its source is in the validation set")
            index = index[~leaking]
            if not len(index):
                raise ValueError("every training source is in the validation set too; nothing is left to learn from.")
        else:
            held = _held_out(hashes[index], settings.valid_size)
            np.save(folder / "valid.index.npy", index[held])
            index = index[~held]
        np.save(folder / "train.index.npy", index)
        about = {"fingerprint": mark, "own_valid": own_valid, "set_aside": dict(aside.counts)}
    (folder / "corpus.json").write_text(json.dumps(about, indent=2))


def _nothing_left(what: str, aside: SetAside) -> str:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in aside.counts.most_common())
    if not reasons:
        return f"there is not one {what} example in the files; are they empty?"
    return (
        f"no {what} example is left: all were set aside ({reasons}); what is too long is decided by data.longest and "
        f"data.most_characters."
        if " over " in reasons
        else f"no {what} example is left: all were set aside ({reasons})."
    )


class _Origins:
    """Where each stored example came from, in little memory."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.starts: list[int] = []  # the number of the first example of each file
        self.lines: NDArray[np.int64] = np.zeros(0, np.int64)

    def example(self, folder: Path, name: str, number: int) -> Example:
        file = self.files[int(np.searchsorted(self.starts, number, "right")) - 1]
        source, target = (
            _text(Ragged(folder / f"{name}.{side}_text", np.uint8)[number]) for side in ("source", "target")
        )
        return Example(source, target, file, int(self.lines[number]))


def _hash(source: str) -> int:
    return int.from_bytes(hashlib.blake2b(source.casefold().encode(), digest_size=8).digest(), "little")


def _store(found: Iterator[Example], folder: Path, name: str, origins: _Origins, report: Report) -> NDArray[np.uint64]:
    """Write the texts of all examples; their sources' hashes."""
    hashes: list[NDArray[np.uint64]] = []
    some_hashes: list[int] = []
    lines: list[NDArray[np.int64]] = []
    some_lines: list[int] = []
    number = 0
    with (
        RaggedWriter(folder / f"{name}.source_text", np.uint8) as source,
        RaggedWriter(folder / f"{name}.target_text", np.uint8) as target,
    ):
        for number, example in enumerate(found, 1):
            if not origins.files or origins.files[-1] != example.file:
                origins.files.append(example.file)
                origins.starts.append(number - 1)
            source.append(example.source.encode("utf-8", "replace"))
            target.append(example.target.encode("utf-8", "replace"))
            some_hashes.append(_hash(example.source))
            some_lines.append(example.line)
            if number % CUT_AT_ONCE == 0:
                hashes.append(np.array(some_hashes, np.uint64))
                lines.append(np.array(some_lines, np.int64))
                some_hashes, some_lines = [], []
                report("reading", number, None)
    report("reading", number, number)
    origins.lines = np.concatenate([*lines, np.array(some_lines, np.int64)])
    return np.concatenate([*hashes, np.array(some_hashes, np.uint64)])


def _source_hashes(folder: Path, name: str) -> NDArray[np.uint64]:
    texts = Ragged(folder / f"{name}.source_text", np.uint8)
    return np.array([_hash(_text(texts[at])) for at in range(len(texts))], np.uint64)


def _usual_lengths(folder: Path, settings: DataSettings, origins: _Origins, aside: SetAside) -> NDArray[np.bool_]:
    """False for examples whose sides' lengths differ far more than is usual in this corpus."""
    source, target = (Ragged(folder / f"train.{side}_text", np.uint8).lengths for side in ("source", "target"))
    ratio = np.log((source + SMOOTHING) / (target + SMOOTHING))
    usual: NDArray[np.bool_] = np.abs(ratio - np.median(ratio)) <= np.log(settings.unusual_ratio)
    for at in np.flatnonzero(~usual):
        aside.put(origins.example(folder, "train", int(at)), "unusual ratio of lengths")
    return usual


def _learn(settings: DataSettings, folder: Path, usable: NDArray[np.bool_], report: Report) -> dict[str, Subwords]:
    report("learning subwords", 0, None)
    count = int(usable.sum())
    size = settings.subwords.size or vocabulary_size(count)
    numbers = np.flatnonzero(usable)
    if count > SAMPLED_LINES:
        numbers = numbers[:: -(-count // SAMPLED_LINES)]

    def lines(*sides: str) -> Iterator[str]:
        for side in sides:
            texts = Ragged(folder / f"train.{side}_text", np.uint8)
            yield from (_text(texts[int(at)]) for at in numbers)

    if settings.subwords.joint:
        both = train(lines("source", "target"), settings.subwords, size)
        return {"source": both, "target": both}
    return {side: train(lines(side), settings.subwords, size) for side in ("source", "target")}


def vocabulary_size(examples_count: int) -> int:
    """A size that suits so many examples: rare subwords of small data are never learnt well."""
    for most, size in ((2_000, 1_000), (10_000, 2_000), (100_000, 4_000), (1_000_000, 16_000)):
        if examples_count <= most:
            return size
    return 32_000


def _cut(
    settings: DataSettings,
    folder: Path,
    name: str,
    subwords: dict[str, Subwords],
    origins: _Origins,
    aside: SetAside,
    wanted: NDArray[np.bool_],
    report: Report,
) -> NDArray[np.bool_]:
    """Write the tokens of all examples; False for those that are too long. Unwanted ones are stored empty."""
    fit = np.ones(len(origins.lines), bool)
    narrow = max(len(vocabulary) for vocabulary in subwords.values()) < 1 << 16
    if narrow:
        (folder / f"{name}.narrow").touch()
    kind = np.uint16 if narrow else np.int32
    for side, vocabulary in subwords.items():
        texts = Ragged(folder / f"{name}.{side}_text", np.uint8)
        with RaggedWriter(folder / f"{name}.{side}", kind) as writer:
            for start in range(0, len(texts), CUT_AT_ONCE):
                some = range(start, min(start + CUT_AT_ONCE, len(texts)))
                tokens = vocabulary.encode([_text(texts[at]) if wanted[at] else "" for at in some])
                for at, sequence in zip(some, tokens, strict=True):
                    if len(sequence) >= settings.longest:
                        if fit[at]:
                            aside.put(origins.example(folder, name, at), f"over {settings.longest} tokens")
                        fit[at] = False
                        sequence = []  # noqa: PLW2901
                    writer.append(sequence)
                report(f"cutting the {side}", some.stop, len(texts))
    return fit


def _held_out(hashes: NDArray[np.uint64], wanted: int | None) -> NDArray[np.bool_]:
    """Which examples to judge by: those of the smallest hashes, whole groups of one source, about `wanted` in all."""
    wanted = min(LARGEST_VALID, max(1, len(hashes) // 20)) if wanted is None else wanted
    if len(np.unique(hashes)) < 2:
        raise ValueError(
            "the examples all have one source; there is nothing to hold out for validation: name other examples with "
            "--valid."
        )
    order = np.sort(hashes)
    edge = order[min(wanted, len(order)) - 1]
    held: NDArray[np.bool_] = hashes <= edge
    if held.all():
        raise ValueError(
            f"data.valid_size: {wanted:,} of {len(hashes):,} examples would leave none to learn from; hold out fewer."
        )
    return held
