"""A prepared corpus: its validation set, when it is prepared again, and that it is never incomplete."""

import json
import os
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data import preparation
from regard.data.corpus import Corpus, prepare
from regard.data.dataset_kinds.text_pairs import TextPairs
from regard.data.pair_dataset import PairDataset
from regard.data.preparation import vocabulary_size
from regard.data.settings import DataSettings
from regard.data.tokenizers.sentencepiece_tokenizer import train_tokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.models.settings import TextSource
from regard.special_tokens import EOS
from tests.data.files import is_one_sentence, write

WORDS = ["red", "green", "blue", "small", "large", "old", "new", "cat", "dog", "house", "tree", "river"]
GERMAN_WORDS = ["rot", "grün", "blau", "klein", "groß", "alt", "neu", "Katze", "Hund", "Haus", "Baum", "Fluss"]


def sentences(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Pairs with different sources, each word with its translation."""
    rng = random.Random(seed)
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        chosen = [rng.randrange(len(WORDS)) for _ in range(rng.randint(2, 6))]
        pairs[" ".join(WORDS[at] for at in chosen)] = " ".join(GERMAN_WORDS[at] for at in chosen)
    return list(pairs.items())


def table(path: Path, pairs: list[tuple[str, str]]) -> Path:
    return write(path, "".join(f"{source}\t{target}\n" for source, target in pairs))


def texts(pairs: Any) -> list[tuple[str, str]]:
    assert isinstance(pairs, PairDataset)
    return [pairs.texts(at) for at in range(len(pairs))]


def prepare_corpus(folder: Path, *files: Path, **settings: object) -> Corpus:
    return prepare(DataSettings.parse({"pairs": files, **settings}), folder, kind=TextPairs(), source=TextSource())


def refusal(folder: Path, *files: Path, **settings: object) -> str:
    with pytest.raises(ValueError, match=r"\w") as caught:
        prepare_corpus(folder, *files, **settings)
    assert is_one_sentence(str(caught.value)), str(caught.value)
    assert not folder.exists()
    return str(caught.value)


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return sentences(120)


# Content


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_tokens_decode_to_the_texts(kind: str, joint: bool, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    corpus = prepare_corpus(tmp_path / "c", table(tmp_path / "a.tsv", pairs), subwords={"kind": kind, "joint": joint})
    assert sorted(texts(corpus.train) + texts(corpus.valid)) == sorted(pairs)
    assert corpus.rejected == {}
    for split in (corpus.train, corpus.valid):
        assert len(split.source_lengths) == len(split.target_lengths) == len(split)
        for at in range(len(split)):
            source, target = split.tokens(at)
            assert source[-1] == target[-1] == EOS
            assert (len(source), len(target)) == (split.source_lengths[at], split.target_lengths[at])
            decoded = corpus.source_processor.decode([source])[0], corpus.target_vocabulary.decode([target])[0]
            assert decoded == split.texts(at)
    assert (corpus.source_processor.model == corpus.target_vocabulary.model) == joint


def test_every_line_is_used_or_rejected_and_counted(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    invalid = [
        ("", "leer"),
        ("empty", " "),
        ("bell\x07", "Glocke"),
        ("red " * 400, "rot " * 400),
        ("red", "rot " * 200),
    ]
    path = table(tmp_path / "a.tsv", pairs + invalid)
    path.write_bytes(path.read_bytes() + b"alone\ncaf\xe9\tKaffee\n")
    corpus = prepare_corpus(tmp_path / "c", path)
    assert len(corpus.train) + len(corpus.valid) == len(pairs)
    assert corpus.rejected == {
        "empty source": 1,
        "empty target": 1,
        "control characters": 1,
        "over 256 tokens": 1,
        "unusual ratio of lengths": 1,
        "only 1 column(s)": 1,
        "not UTF-8": 1,
    }
    records = [json.loads(line) for line in (tmp_path / "c" / "rejected.jsonl").read_bytes().split(b"\n")[:-1]]
    assert {(record["line"], record["reason"]) for record in records} == {
        (121, "empty source"),
        (122, "empty target"),
        (123, "control characters"),
        (124, "over 256 tokens"),
        (125, "unusual ratio of lengths"),
        (126, "only 1 column(s)"),
        (127, "not UTF-8"),
    }
    assert {record["file"] for record in records} == {str(path)}


def test_examples_rejected_after_reading_have_their_file_and_line(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    long = ("red " * 300, "rot " * 300)
    first = table(tmp_path / "a.tsv", [*pairs[:50], ("", ""), long])
    second = table(tmp_path / "b.tsv", [long, *pairs[50:]])
    prepare_corpus(tmp_path / "c", first, second)
    records = [json.loads(line) for line in (tmp_path / "c" / "rejected.jsonl").read_text().splitlines()]
    rejected = sorted((record["file"], record["line"]) for record in records if record["reason"] == "over 256 tokens")
    assert rejected == [(str(first), 52), (str(second), 1)]


def test_the_length_limit_includes_the_end_token(tmp_path: Path) -> None:
    lines = [("x" * length, "y" * length) for length in range(1, 9)]
    settings = {"max_tokens": 6, "valid_size": 1, "subwords": {"kind": "character"}}
    corpus = prepare_corpus(tmp_path / "c", table(tmp_path / "a.tsv", lines), **settings)
    lengths = [*corpus.train.source_lengths.tolist(), *corpus.valid.source_lengths.tolist()]
    assert max(lengths) <= 6
    assert corpus.rejected == {"over 6 tokens": 8 - len(lengths)}


def test_unusual_ratios_of_lengths_are_relative_to_the_corpus(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    """Where every target is twelve times longer, that is usual, and equal lengths are not."""
    lines = [(source, f"{target} " * 12) for source, target in pairs]
    outlier = ("red green blue small large old new cat dog house tree river " * 2, "rot")
    corpus = prepare_corpus(tmp_path / "c", table(tmp_path / "a.tsv", [*lines, outlier]), max_tokens=2000)
    assert corpus.rejected == {"unusual ratio of lengths": 1}


def test_placeholders_are_text_if_turned_off(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    lines = [(f"{source} %s", f"%s {target}") for source, target in pairs]
    symbols = prepare_corpus(tmp_path / "a", table(tmp_path / "a.tsv", lines))
    assert symbols.treatments == {"printf": "symbol"}
    plain = prepare_corpus(tmp_path / "b", table(tmp_path / "a.tsv", lines), placeholders=False)
    assert not plain.protection.uses_symbols
    assert plain.protection.split_unknown("a <b>c</b> %d {x}") == [("a <b>c</b> %d {x}", False)], (
        "not split into pieces"
    )


def test_a_lone_surrogate_in_json_rejects_only_its_example(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    lines = [json.dumps(pair) + "\n" for pair in [*pairs, ("one \ud83d", "eins"), ("two", "zwei \udc4d")]]
    corpus = prepare_corpus(tmp_path / "c", write(tmp_path / "a.jsonl", "".join(lines)))
    assert len(corpus.train) + len(corpus.valid) == len(pairs)
    assert sum(corpus.rejected.values()) == 2


# Validation set


def test_the_validation_set_does_not_depend_on_the_order_of_files_or_lines(
    pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    first, second = table(tmp_path / "a.tsv", pairs[:70]), table(tmp_path / "b.tsv", pairs[70:])
    reverse = table(tmp_path / "d.tsv", pairs[::-1])
    valid = [
        sorted(texts(prepare_corpus(tmp_path / f"c{number}", *files).valid))
        for number, files in enumerate([(first, second), (first, second), (second, first), (reverse,)])
    ]
    assert valid[0] == valid[1] == valid[2] == valid[3]
    assert len(valid[0]) == 6  # one in twenty


def test_the_validation_set_is_mostly_the_same_when_data_is_added(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    small = prepare_corpus(tmp_path / "c1", table(tmp_path / "a.tsv", pairs[:100]), valid_size=10)
    large = prepare_corpus(tmp_path / "c2", table(tmp_path / "b.tsv", pairs), valid_size=20)
    common = set(texts(small.valid)) & set(texts(large.valid))
    assert len(common) >= 8


@pytest.mark.parametrize("own", [False, True])
def test_no_source_is_in_both_sets(own: bool, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    rng = random.Random(1)
    forms = [str.upper, str.title, str.lower, lambda text: f"  {text.replace(' ', '   ')} "]
    many = [(rng.choice(forms)(f"{source} Straße"), target) for source, target in pairs * 4]
    many += [(source.upper(), target) for source, target in many[:40]]  # ß in capitals is SS
    settings: dict[str, object] = {}
    if own:
        settings["valid_pairs"] = [table(tmp_path / "v.tsv", many[:30])]
        many = many[15:]
    corpus = prepare_corpus(tmp_path / "c", table(tmp_path / "a.tsv", many), **settings)
    train, valid = ({source.casefold() for source, _ in texts(split)} for split in (corpus.train, corpus.valid))
    assert train
    assert valid
    assert not train & valid
    if own:
        assert sorted(texts(corpus.valid)) == sorted(
            (" ".join(source.split()), target)
            for source, target in (line.split("\t") for line in (tmp_path / "v.tsv").read_text().splitlines())
        )
        assert len(corpus.train) + corpus.rejected["its source is in the validation set"] == len(many)
    else:
        assert len(corpus.train) + len(corpus.valid) == len(many)


@pytest.mark.parametrize("size", [1, 7, 60])
def test_the_validation_set_has_the_requested_size(size: int, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    assert len(prepare_corpus(tmp_path / "c", table(tmp_path / "a.tsv", pairs), valid_size=size).valid) == size


def test_two_examples_are_enough(tmp_path: Path) -> None:
    corpus = prepare_corpus(tmp_path / "c", table(tmp_path / "a.tsv", [("one", "eins"), ("two", "zwei")]))
    assert (len(corpus.train), len(corpus.valid)) == (1, 1)


# Errors


def test_an_empty_corpus_is_refused_in_a_sentence(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    good, folder = table(tmp_path / "a.tsv", pairs), tmp_path / "c"
    same = table(tmp_path / "b.tsv", [("one", "eins"), ("ONE", "zwei")])
    empty = write(tmp_path / "d.tsv", "")
    blank = table(tmp_path / "e.tsv", [(" ", "x"), ("y", ""), ("z", "")])
    long = table(tmp_path / "f.tsv", [("red " * 300, "rot " * 300)])
    with pytest.raises(ValueError, match=r"^there is nothing to train on; name files, as in: regard train pairs.tsv$"):
        prepare_corpus(folder)
    assert f"{tmp_path / 'g.tsv'}: there is no such file" in refusal(folder, tmp_path / "g.tsv")
    assert "all have one source" in refusal(folder, same)
    assert "are they empty?" in refusal(folder, empty)
    assert "(2 empty target, 1 empty source)" in refusal(folder, blank)
    assert "no training example is left" in refusal(folder, long)
    assert "valid_size: 120 of 120" in refusal(folder, good, valid_size=120)
    assert "not one validation example" in refusal(folder, good, valid_pairs=[empty])
    assert "no validation example is left" in refusal(folder, good, valid_pairs=[blank])
    assert "every training source is in the validation set" in refusal(folder, good, valid_pairs=[good])


def test_validation_files_with_only_long_examples_are_refused(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    good, long = table(tmp_path / "a.tsv", pairs), table(tmp_path / "v.tsv", [("red " * 300, "rot " * 300)])
    assert "no validation example is left" in refusal(tmp_path / "c", good, valid_pairs=[long])


# Reuse and interruption


class RecordedProgress:
    """A report that records the stages, and interrupts at one of them."""

    def __init__(self, stop_at: str = "never") -> None:
        self.stages: list[str] = []
        self.stop_at = stop_at

    def __call__(self, what: str, done: int, total: int | None) -> None:
        self.stages.append(what)
        if what == self.stop_at:
            raise KeyboardInterrupt


def test_an_unchanged_corpus_is_reused(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    settings, first, second = (
        DataSettings(pairs=(table(tmp_path / "a.tsv", pairs),)),
        RecordedProgress(),
        RecordedProgress(),
    )
    corpus, reused = (
        prepare(settings, tmp_path / "c", report=first, kind=TextPairs(), source=TextSource()),
        prepare(settings, tmp_path / "c", report=second, kind=TextPairs(), source=TextSource()),
    )
    assert set(first.stages) == {"reading", "learning subwords", "tokenizing the source", "tokenizing the target"}
    assert second.stages == []
    assert texts(corpus.train) == texts(reused.train)
    assert texts(corpus.valid) == texts(reused.valid)
    assert corpus.fingerprint == reused.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"valid_size": 3},
        {"lowercase": True},
        {"max_tokens": 100},
        {"subwords": {"size": 400}},
        {"subwords": {"kind": "unigram"}},
        {"source_column": 2, "target_column": 1},
    ],
    ids=str,
)
def test_a_changed_setting_prepares_the_corpus_again(
    change: dict[str, object], pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    path, progress = table(tmp_path / "a.tsv", pairs), RecordedProgress()
    before = prepare_corpus(tmp_path / "c", path)
    after = prepare(
        DataSettings.parse({"pairs": [path], **change}),
        tmp_path / "c",
        report=progress,
        kind=TextPairs(),
        source=TextSource(),
    )
    assert "learning subwords" in progress.stages
    assert after.fingerprint != before.fingerprint


def test_a_changed_file_prepares_the_corpus_again(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    path, valid = table(tmp_path / "a.tsv", pairs[:60]), table(tmp_path / "v.tsv", pairs[60:70])
    assert len(prepare_corpus(tmp_path / "c", path, valid_pairs=[valid]).train) == 60
    table(path, pairs[:50])
    assert len(prepare_corpus(tmp_path / "c", path, valid_pairs=[valid]).train) == 50
    table(valid, pairs[60:65])
    assert len(prepare_corpus(tmp_path / "c", path, valid_pairs=[valid]).valid) == 5
    same_length = path.read_text().replace("red", "RED")
    before = path.stat().st_mtime_ns
    path.write_text(same_length)
    os.utime(path, ns=(before, before + 1_000_000))
    changed = prepare_corpus(tmp_path / "c", path, valid_pairs=[valid])
    assert any("RED" in source for source, _ in texts(changed.train))


STAGES = ["reading", "learning subwords", "tokenizing the source", "tokenizing the target"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("exists", [False, True])
def test_an_interruption_leaves_no_incomplete_corpus(
    exists: bool, stage: str, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    path = table(tmp_path / "a.tsv", pairs[:60])
    if exists:
        prepare_corpus(tmp_path / "c", path, valid_size=2)
    with pytest.raises(KeyboardInterrupt):
        prepare(
            DataSettings(pairs=(path,)),
            tmp_path / "c",
            report=RecordedProgress(stage),
            kind=TextPairs(),
            source=TextSource(),
        )
    assert (tmp_path / "c").exists() == exists
    for folder in tmp_path.glob("c*"):
        assert (folder / "corpus.json").exists() == (folder.name == "c" and exists)
    progress = RecordedProgress()
    corpus = prepare(
        DataSettings(pairs=(path,)), tmp_path / "c", report=progress, kind=TextPairs(), source=TextSource()
    )
    assert set(progress.stages) == set(STAGES)
    assert sorted(texts(corpus.train) + texts(corpus.valid)) == sorted(pairs[:60])
    assert [folder.name for folder in tmp_path.glob("c*")] == ["c"]


def test_an_interruption_while_the_last_files_are_written_leaves_no_incomplete_corpus(
    pairs: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(tmp_path / "a.tsv", pairs[:60])
    for call in range(2):
        count = iter(range(9))

        def save(*arguments: object, call: int = call) -> None:
            if next(count) == call:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(np, "save", save)
            with pytest.raises(KeyboardInterrupt):
                prepare_corpus(tmp_path / "c", path)
        assert not (tmp_path / "c").exists()
    assert len(prepare_corpus(tmp_path / "c", path).train) == 57


def test_an_interruption_while_the_old_corpus_is_removed_is_recovered_from(
    pairs: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the old corpus is removed, and the new one not yet moved: the old one must be prepared again."""
    path = table(tmp_path / "a.tsv", pairs[:60])
    prepare_corpus(tmp_path / "c", path)
    complete_removal = shutil.rmtree

    def partial_removal(folder: Path, **options: Any) -> None:
        if folder.name != "c":
            complete_removal(folder, **options)
            return
        for name in ("train.source.bin", "train.source.ends", "train.index.npy"):
            (folder / name).unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", partial_removal)
        with pytest.raises(KeyboardInterrupt):
            prepare_corpus(tmp_path / "c", path, valid_size=9)
    corpus = prepare_corpus(tmp_path / "c", path)
    assert sorted(texts(corpus.train) + texts(corpus.valid)) == sorted(pairs[:60])


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "null"])
def test_damaged_metadata_prepares_the_corpus_again(content: str, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    path = table(tmp_path / "a.tsv", pairs[:20])
    prepare_corpus(tmp_path / "c", path)
    (tmp_path / "c" / "corpus.json").write_text(content)
    assert len(prepare_corpus(tmp_path / "c", path).train) == 19


@pytest.mark.parametrize(("limit", "value"), [("SAMPLED_LINES", 20), ("SAMPLED_BYTES", 600)])
def test_subwords_are_learned_from_a_sample_of_a_large_corpus(
    limit: str, value: int, pairs: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples: list[list[str]] = []

    def recording_trainer(lines: Iterable[str], *arguments: Any) -> SubwordTokenizer:
        samples.append(list(lines))
        return train_tokenizer(samples[-1], *arguments)

    monkeypatch.setattr(preparation, "train_tokenizer", recording_trainer)
    monkeypatch.setattr(preparation, limit, value)
    corpus = prepare_corpus(tmp_path / "corpus", table(tmp_path / "pairs.tsv", pairs), subwords={"joint": False})
    assert len(corpus.train) + len(corpus.valid) == len(pairs)
    for side, lines in enumerate(samples):
        assert 0 < (len(lines) if limit == "SAMPLED_LINES" else len("".join(lines).encode())) <= value
        assert set(lines) <= {pair[side] for pair in pairs}


def test_more_examples_get_a_larger_vocabulary() -> None:
    sizes = [vocabulary_size(count) for count in (1, 5_000, 50_000, 500_000, 5_000_000)]
    assert sizes == sorted(set(sizes))
