"""Making a corpus, in passes none of which holds the data.

Texts are checked and stored, subwords are learnt from a sample, texts are cut into tokens. What is held out is chosen
by a hash of the source, so it does not depend on the order of the files, and one source never stands on both sides.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.example import Example
from regard.data.input_validation import RATIO_SMOOTHING, RejectedExamples, read_examples, valid_examples
from regard.data.labels import Ends, Labels, Tags
from regard.data.media import medium_of
from regard.data.media_store import MediaKeeper
from regard.data.placeholders import KINDS, SYMBOLS, TEXT, PlaceholderStatistics, Protection, Treatment
from regard.data.ragged_array import Ragged, RaggedWriter
from regard.data.settings import LANGUAGE_SIGN, DataSettings
from regard.data.split import select_validation, source_hash
from regard.data.tokenization import CUT_AT_ONCE, Cutting, Origins, Report, Texts
from regard.data.tokenizers import load_tokenizer
from regard.data.tokenizers.sentencepiece_tokenizer import train_tokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.data.vocabulary import Vocabulary, target_file
from regard.errors import RegardError
from regard.sources import Says, Source, Text
from regard.special_tokens import MASK_SIGN, SEPARATOR_SIGN

# What subwords are learnt from, at most, on each side: sentencepiece holds all of it in memory, many times over.
SAMPLED_LINES, SAMPLED_BYTES = 500_000, 50_000_000
SENTENCE = 60  # bytes of plain text that count as an example


def silent(what: str, done: int, total: int | None) -> None:
    """Report to nobody."""


def make(
    settings: DataSettings, folder: Path, mark: str, report: Report, *, source: Source | None = None, says: Says
) -> None:
    """Everything that `corpus.py` opens, in a new folder. `source`: what is read; `says`: what targets are."""
    own_valid = any((settings.valid_pairs, settings.valid_source, settings.valid_target, settings.valid_text))
    source = source or Text()
    pairs_of_texts = source.kind == "text" and says == "text" and not settings.text  # whose sides can be compared
    with RejectedExamples(folder / "rejected.jsonl") as aside:
        origins = {"train": Origins()}
        hashes = _read(settings, source, says, folder, "train", origins, aside, report)
        if not len(hashes):
            raise RegardError(_nothing_left("training", aside))
        if own_valid:
            judged = _read(settings, source, says, folder, "valid", origins, aside, report)
            if not len(judged):
                raise RegardError(_nothing_left("validation", aside))
        alike = pairs_of_texts and not settings.whole  # an answer is short however long its story
        usual = _usual_lengths(folder, settings, origins["train"], aside) if alike else np.ones(len(hashes), bool)
        kept = settings.placeholders and pairs_of_texts
        treatments = _census(folder, usual) if kept else dict.fromkeys(KINDS, TEXT)
        protection = Protection(treatments)
        usual &= _same_placeholders(folder, protection, origins["train"], aside, usual)
        subwords = _learn(settings, folder, usual, protection, report, source=source, says=says)
        for side, vocabulary in subwords.items():
            path = folder / "source.subwords" if side == "source" else target_file(folder, says)
            path.write_bytes(vocabulary.model)
        if says == "tags":
            usual &= _word_by_word(folder, "train", origins["train"], aside)
        cutting = Cutting(settings, source, says, folder, subwords, protection, aside, report)
        fit = usual & cutting.cut("train", origins["train"], usual)
        index = np.flatnonzero(fit)
        if not len(index):
            raise RegardError(_nothing_left("training", aside))
        if own_valid:
            everything = np.ones(len(origins["valid"].lines), bool)
            if says == "tags":
                everything = _word_by_word(folder, "valid", origins["valid"], aside)
            fit_valid = everything & cutting.cut("valid", origins["valid"], everything)
            if not fit_valid.any():
                raise RegardError(_nothing_left("validation", aside))
            np.save(folder / "valid.index.npy", np.flatnonzero(fit_valid))
            # A source that is judged by must not be learnt from.
            leaking = np.isin(hashes[index], judged)
            for at in index[leaking]:
                aside.add(origins["train"].example(folder, "train", int(at)), "its source is in the validation set")
            index = index[~leaking]
            if not len(index):
                raise RegardError("every training source is in the validation set too; nothing is left to learn from.")
        else:
            held = select_validation(hashes[index], settings.valid_size)
            np.save(folder / "valid.index.npy", index[held])
            index = index[~held]
        np.save(folder / "train.index.npy", index)
        about = {
            "fingerprint": mark,
            "own_valid": own_valid,
            "set_aside": dict(aside.counts),
            "placeholders": treatments,
            "longest": settings.longest if settings.text else None,
        }
    (folder / "corpus.json").write_text(json.dumps(about, indent=2))


def _nothing_left(what: str, aside: RejectedExamples) -> str:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in aside.counts.most_common())
    if not reasons:
        return f"there is not one {what} example in the files; are they empty?"
    return (
        f"no {what} example is left: all were set aside ({reasons}); what is too long is decided by data.longest and "
        f"data.most_characters."
        if " over " in reasons
        else f"no {what} example is left: all were set aside ({reasons})."
    )


def _read(
    settings: DataSettings,
    source: Source,
    says: Says,
    folder: Path,
    name: str,
    origins: dict[str, Origins],
    aside: RejectedExamples,
    report: Report,
) -> NDArray[np.uint64]:
    """Check and store the examples of the training or the validation files; their sources' hashes."""
    origins[name] = Origins()
    medium = medium_of(source)
    read = read_examples(settings, valid=name == "valid")
    found = valid_examples(
        read,
        settings,
        aside,
        labels=says in ("label", "tags"),
        file_names=medium is not None and not settings.text,
        allow_empty_target=says == "span",
    )
    if settings.text:
        return _store(_one_side(found, said=source.kind == "nothing"), folder, name, origins[name], report)
    if medium is not None:
        with MediaKeeper(folder / f"{name}.source", medium, settings.media, aside) as keeper:
            stored = _store(keeper.readable(found), folder, name, origins[name], report)
        return keeper.hashes if len(stored) else stored
    if says == "span":
        found = _keep_occurrences(found, folder / f"{name}.occurrences")
    if settings.alignment and name == "train":
        found = _keep_links(found, folder / "train.links")
    return _store(found, folder, name, origins[name], report)


def _one_side(found: Iterator[Example], *, said: bool) -> Iterator[Example]:
    """Plain text, kept once: as what is said, or as what is read."""
    for example in found:
        yield replace(example, source="") if said else replace(example, target="")


def _store(found: Iterator[Example], folder: Path, name: str, origins: Origins, report: Report) -> NDArray[np.uint64]:
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
            some_hashes.append(source_hash(example.source or example.target))
            some_lines.append(example.line)
            if number % CUT_AT_ONCE == 0:
                hashes.append(np.array(some_hashes, np.uint64))
                lines.append(np.array(some_lines, np.int64))
                some_hashes, some_lines = [], []
                report("reading", number, None)
    report("reading", number, number)
    origins.lines = np.concatenate([*lines, np.array(some_lines, np.int64)])
    return np.concatenate([*hashes, np.array(some_hashes, np.uint64)])


def _keep_links(found: Iterator[Example], path: Path) -> Iterator[Example]:
    """The same examples; their links are written."""
    with RaggedWriter(path, np.int32) as links:
        for example in found:
            links.append([word for link in example.links for word in link])
            yield example


def _keep_occurrences(found: Iterator[Example], path: Path) -> Iterator[Example]:
    """The same examples; which occurrence of its target each means is written."""
    with RaggedWriter(path, np.int32) as which:
        for example in found:
            which.append([example.occurrence])
            yield example


def _word_by_word(folder: Path, name: str, origins: Origins, aside: RejectedExamples) -> NDArray[np.bool_]:
    """False for texts that have not as many tags as words."""
    texts = Texts(folder, name, Protection({}))
    same = np.ones(len(texts), bool)
    for at in range(len(texts)):
        words, tags = (len(side.split()) for side in texts.raw(at))
        if words != tags:
            aside.add(origins.example(folder, name, at), "not as many tags as words")
            same[at] = False
    return same


def _usual_lengths(
    folder: Path, settings: DataSettings, origins: Origins, aside: RejectedExamples
) -> NDArray[np.bool_]:
    """False for examples whose sides' lengths differ far more than is usual in this corpus."""
    source, target = (Ragged(folder / f"train.{side}_text", np.uint8).lengths for side in ("source", "target"))
    ratio = np.log((source + RATIO_SMOOTHING) / (target + RATIO_SMOOTHING))
    usual: NDArray[np.bool_] = np.abs(ratio - np.median(ratio)) <= np.log(settings.unusual_ratio)
    for at in np.flatnonzero(~usual):
        aside.add(origins.example(folder, "train", int(at)), "unusual ratio of lengths")
    return usual


def _census(folder: Path, usable: NDArray[np.bool_]) -> dict[str, Treatment]:
    """What becomes of each kind of placeholder that the training examples have."""
    statistics = PlaceholderStatistics()
    read = Texts(folder, "train", Protection({}))
    for at in np.flatnonzero(usable):
        statistics.add(*read.raw(int(at)))
    return statistics.treatments()


def _same_placeholders(
    folder: Path, protection: Protection, origins: Origins, aside: RejectedExamples, usable: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """False for examples whose sides have not the same placeholders: they would teach to lose them."""
    same = np.ones(len(usable), bool)
    if protection.uses_symbols:
        read = Texts(folder, "train", protection)
        for at in np.flatnonzero(usable):
            if protection.protect_pair(*read.raw(int(at))) is None:
                aside.add(origins.example(folder, "train", int(at)), "other placeholders than its source")
                same[at] = False
    return same


def _learn(
    settings: DataSettings,
    folder: Path,
    usable: NDArray[np.bool_],
    protection: Protection,
    report: Report,
    *,
    source: Source,
    says: Says,
) -> dict[str, Vocabulary]:
    """The vocabulary of each side that has one."""
    report("learning subwords", 0, None)
    count = int(usable.sum())
    size = settings.subwords.size
    numbers = np.flatnonzero(usable)
    sides = [Ragged(folder / f"train.{side}_text", np.uint8).lengths[numbers] for side in ("source", "target")]
    letters = max(int(lengths.sum(dtype=np.int64)) for lengths in sides)
    size = size or vocabulary_size(letters // SENTENCE if settings.text else count)
    numbers = numbers[:: max(1, -(-count // SAMPLED_LINES), -(-letters // SAMPLED_BYTES))]

    texts = Texts(folder, "train", protection)
    masks = (MASK_SIGN,) if settings.text and source.kind == "text" else ()
    languages = tuple(LANGUAGE_SIGN.format(language) for language in settings.target_languages)
    symbols = (*masks, *languages, *(SYMBOLS if protection.uses_symbols else ()))

    def lines(*sides: str) -> Iterator[str]:
        for side in sides:
            yield from (texts.side(int(at), side).replace(SEPARATOR_SIGN, " ") for at in numbers)

    def vocabulary(known: Path | None, *sides: str) -> SubwordTokenizer:
        if known is None:
            return train_tokenizer(lines(*sides), settings.subwords, size, symbols)
        given = load_tokenizer(known)
        for symbol in symbols:
            if given.token(symbol) is None:
                raise RegardError(f"{known}: this vocabulary has no place for what these data need; learn one instead.")
        return given

    found: dict[str, Vocabulary] = {}
    known = settings.source_vocabulary
    if source.kind == "text" and says == "text" and (settings.subwords.joint or settings.text):
        both = vocabulary(known, "source", *(() if settings.text else ("target",)))
        return {"source": both, "target": both}
    if source.kind == "text":
        found["source"] = vocabulary(known, "source")
    if says == "text":
        found["target"] = vocabulary(settings.target_vocabulary, "target")
    else:
        said = (texts.side(int(at), "target") for at in np.flatnonzero(usable))
        if says == "span":
            found["target"] = Ends(unanswered=not all(said))
        else:
            found["target"] = Tags.of(said) if says == "tags" else Labels.of(said)
    return found


def vocabulary_size(examples_count: int) -> int:
    """A size that suits so many examples: rare subwords of small data are never learnt well."""
    for most, size in ((2_000, 1_000), (10_000, 2_000), (100_000, 4_000), (1_000_000, 16_000)):
        if examples_count <= most:
            return size
    return 32_000
