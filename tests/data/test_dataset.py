"""A prepared corpus: honest about what is held out, made anew exactly when it must be, never half made."""

import json
import os
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data import preparation as making
from regard.data.dataset import Corpus, prepare
from regard.data.kinds.text_pairs import TextPairs
from regard.data.pairs import PairDataset
from regard.data.preparation import vocabulary_size
from regard.data.settings import DataSettings
from regard.data.tokenizers.sentencepiece_tokenizer import train_tokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.models.settings import TextSource
from regard.special_tokens import END
from tests.data.files import is_one_sentence, write

WORDS = ["red", "green", "blue", "small", "large", "old", "new", "cat", "dog", "house", "tree", "river"]
WORTE = ["rot", "grün", "blau", "klein", "groß", "alt", "neu", "Katze", "Hund", "Haus", "Baum", "Fluss"]


def sentences(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Pairs with different sources, each word with its translation."""
    dice = random.Random(seed)
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        chosen = [dice.randrange(len(WORDS)) for _ in range(dice.randint(2, 6))]
        pairs[" ".join(WORDS[at] for at in chosen)] = " ".join(WORTE[at] for at in chosen)
    return list(pairs.items())


def table(path: Path, pairs: list[tuple[str, str]]) -> Path:
    return write(path, "".join(f"{source}\t{target}\n" for source, target in pairs))


def texts(pairs: Any) -> list[tuple[str, str]]:
    assert isinstance(pairs, PairDataset)
    return [pairs.texts(at) for at in range(len(pairs))]


def prepared(folder: Path, *files: Path, **settings: object) -> Corpus:
    return prepare(DataSettings.parse({"pairs": files, **settings}), folder, kind=TextPairs(), source=TextSource())


def refused(folder: Path, *files: Path, **settings: object) -> str:
    with pytest.raises(ValueError, match=r"\w") as caught:
        prepared(folder, *files, **settings)
    assert is_one_sentence(str(caught.value)), str(caught.value)
    assert not folder.exists()
    return str(caught.value)


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return sentences(120)


# What is in it


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_texts_and_tokens_say_the_same(kind: str, joint: bool, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    corpus = prepared(tmp_path / "c", table(tmp_path / "a.tsv", pairs), subwords={"kind": kind, "joint": joint})
    assert sorted(texts(corpus.train) + texts(corpus.valid)) == sorted(pairs)
    assert corpus.rejected == {}
    for part in (corpus.train, corpus.valid):
        assert len(part.source_lengths) == len(part.target_lengths) == len(part)
        for at in range(len(part)):
            source, target = part.tokens(at)
            assert source[-1] == target[-1] == END
            assert (len(source), len(target)) == (part.source_lengths[at], part.target_lengths[at])
            decoded = corpus.source_side.decode([source])[0], corpus.target_side.decode([target])[0]
            assert decoded == part.texts(at)
    assert (corpus.source_side.model == corpus.target_side.model) == joint


def test_every_line_is_used_or_set_aside_and_counted(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    wrong = [("", "leer"), ("empty", " "), ("bell\x07", "Glocke"), ("red " * 400, "rot " * 400), ("red", "rot " * 200)]
    path = table(tmp_path / "a.tsv", pairs + wrong)
    path.write_bytes(path.read_bytes() + b"alone\ncaf\xe9\tKaffee\n")
    corpus = prepared(tmp_path / "c", path)
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


def test_what_is_set_aside_late_is_named_by_its_own_file_and_line(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    long = ("red " * 300, "rot " * 300)
    first = table(tmp_path / "a.tsv", [*pairs[:50], ("", ""), long])
    second = table(tmp_path / "b.tsv", [long, *pairs[50:]])
    prepared(tmp_path / "c", first, second)
    records = [json.loads(line) for line in (tmp_path / "c" / "rejected.jsonl").read_text().splitlines()]
    late = sorted((record["file"], record["line"]) for record in records if record["reason"] == "over 256 tokens")
    assert late == [(str(first), 52), (str(second), 1)]


def test_the_longest_is_counted_with_its_end(tmp_path: Path) -> None:
    lines = [("x" * length, "y" * length) for length in range(1, 9)]
    how = {"longest": 6, "valid_size": 1, "subwords": {"kind": "character"}}
    corpus = prepared(tmp_path / "c", table(tmp_path / "a.tsv", lines), **how)
    lengths = [*corpus.train.source_lengths.tolist(), *corpus.valid.source_lengths.tolist()]
    assert max(lengths) <= 6
    assert corpus.rejected == {"over 6 tokens": 8 - len(lengths)}


def test_what_is_unusual_is_judged_by_this_corpus(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    """Where every target is twelve times longer, that is usual, and equal lengths are not."""
    lines = [(source, f"{target} " * 12) for source, target in pairs]
    odd = ("red green blue small large old new cat dog house tree river " * 2, "rot")
    corpus = prepared(tmp_path / "c", table(tmp_path / "a.tsv", [*lines, odd]), longest=2000)
    assert corpus.rejected == {"unusual ratio of lengths": 1}


def test_placeholders_are_text_where_they_are_not_wanted(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    lines = [(f"{source} %s", f"%s {target}") for source, target in pairs]
    kept = prepared(tmp_path / "a", table(tmp_path / "a.tsv", lines))
    assert kept.treatments == {"printf": "symbol"}
    plain = prepared(tmp_path / "b", table(tmp_path / "a.tsv", lines), placeholders=False)
    assert not plain.protection.uses_symbols
    assert plain.protection.split_unknown("a <b>c</b> %d {x}") == [("a <b>c</b> %d {x}", False)], "no piece by piece"


def test_a_half_character_in_json_does_not_stop_the_rest(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    lines = [json.dumps(pair) + "\n" for pair in [*pairs, ("one \ud83d", "eins"), ("two", "zwei \udc4d")]]
    corpus = prepared(tmp_path / "c", write(tmp_path / "a.jsonl", "".join(lines)))
    assert len(corpus.train) + len(corpus.valid) == len(pairs)
    assert sum(corpus.rejected.values()) == 2


# What is held out


def test_what_is_held_out_does_not_depend_on_the_order_of_files_or_lines(
    pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    first, second = table(tmp_path / "a.tsv", pairs[:70]), table(tmp_path / "b.tsv", pairs[70:])
    turned = table(tmp_path / "d.tsv", pairs[::-1])
    held = [
        sorted(texts(prepared(tmp_path / f"c{number}", *files).valid))
        for number, files in enumerate([(first, second), (first, second), (second, first), (turned,)])
    ]
    assert held[0] == held[1] == held[2] == held[3]
    assert len(held[0]) == 6  # one in twenty


def test_what_is_held_out_stays_held_out_when_data_is_added(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    small = prepared(tmp_path / "c1", table(tmp_path / "a.tsv", pairs[:100]), valid_size=10)
    large = prepared(tmp_path / "c2", table(tmp_path / "b.tsv", pairs), valid_size=20)
    kept = set(texts(small.valid)) & set(texts(large.valid))
    assert len(kept) >= 8


@pytest.mark.parametrize("own", [False, True])
def test_no_source_stands_on_both_sides(own: bool, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    dice = random.Random(1)
    forms = [str.upper, str.title, str.lower, lambda text: f"  {text.replace(' ', '   ')} "]
    many = [(dice.choice(forms)(f"{source} Straße"), target) for source, target in pairs * 4]
    many += [(source.upper(), target) for source, target in many[:40]]  # ß in capitals is SS
    settings: dict[str, object] = {}
    if own:
        settings["valid_pairs"] = [table(tmp_path / "v.tsv", many[:30])]
        many = many[15:]
    corpus = prepared(tmp_path / "c", table(tmp_path / "a.tsv", many), **settings)
    learnt, judged = ({source.casefold() for source, _ in texts(part)} for part in (corpus.train, corpus.valid))
    assert learnt
    assert judged
    assert not learnt & judged
    if own:
        assert sorted(texts(corpus.valid)) == sorted(
            (" ".join(source.split()), target)
            for source, target in (line.split("\t") for line in (tmp_path / "v.tsv").read_text().splitlines())
        )
        assert len(corpus.train) + corpus.rejected["its source is in the validation set"] == len(many)
    else:
        assert len(corpus.train) + len(corpus.valid) == len(many)


@pytest.mark.parametrize("size", [1, 7, 60])
def test_about_as_many_are_held_out_as_asked_for(size: int, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    assert len(prepared(tmp_path / "c", table(tmp_path / "a.tsv", pairs), valid_size=size).valid) == size


def test_two_examples_are_enough(tmp_path: Path) -> None:
    corpus = prepared(tmp_path / "c", table(tmp_path / "a.tsv", [("one", "eins"), ("two", "zwei")]))
    assert (len(corpus.train), len(corpus.valid)) == (1, 1)


# What cannot be


def test_what_leaves_nothing_is_a_sentence(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    good, folder = table(tmp_path / "a.tsv", pairs), tmp_path / "c"
    same = table(tmp_path / "b.tsv", [("one", "eins"), ("ONE", "zwei")])
    empty = write(tmp_path / "d.tsv", "")
    blank = table(tmp_path / "e.tsv", [(" ", "x"), ("y", ""), ("z", "")])
    long = table(tmp_path / "f.tsv", [("red " * 300, "rot " * 300)])
    with pytest.raises(ValueError, match=r"^there is nothing to train on; name files, as in: regard train pairs.tsv$"):
        prepared(folder)
    assert f"{tmp_path / 'g.tsv'}: there is no such file" in refused(folder, tmp_path / "g.tsv")
    assert "all have one source" in refused(folder, same)
    assert "are they empty?" in refused(folder, empty)
    assert "(2 empty target, 1 empty source)" in refused(folder, blank)
    assert "no training example is left" in refused(folder, long)
    assert "valid_size: 120 of 120" in refused(folder, good, valid_size=120)
    assert "not one validation example" in refused(folder, good, valid_pairs=[empty])
    assert "no validation example is left" in refused(folder, good, valid_pairs=[blank])
    assert "every training source is in the validation set" in refused(folder, good, valid_pairs=[good])


def test_validation_files_with_only_too_long_examples_are_a_sentence(
    pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    good, long = table(tmp_path / "a.tsv", pairs), table(tmp_path / "v.tsv", [("red " * 300, "rot " * 300)])
    assert "no validation example is left" in refused(tmp_path / "c", good, valid_pairs=[long])


# When it is made


class Watch:
    """A report that remembers what was done, and stops at a word."""

    def __init__(self, stop_at: str = "never") -> None:
        self.done: list[str] = []
        self.stop_at = stop_at

    def __call__(self, what: str, done: int, total: int | None) -> None:
        self.done.append(what)
        if what == self.stop_at:
            raise KeyboardInterrupt


def test_what_is_unchanged_is_used_again(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    settings, first, second = DataSettings(pairs=(table(tmp_path / "a.tsv", pairs),)), Watch(), Watch()
    made, again = (
        prepare(settings, tmp_path / "c", report=first, kind=TextPairs(), source=TextSource()),
        prepare(settings, tmp_path / "c", report=second, kind=TextPairs(), source=TextSource()),
    )
    assert set(first.done) == {"reading", "learning subwords", "tokenizing the source", "tokenizing the target"}
    assert second.done == []
    assert texts(made.train) == texts(again.train)
    assert texts(made.valid) == texts(again.valid)
    assert made.fingerprint == again.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"valid_size": 3},
        {"lowercase": True},
        {"longest": 100},
        {"subwords": {"size": 400}},
        {"subwords": {"kind": "unigram"}},
        {"source_column": 2, "target_column": 1},
    ],
    ids=str,
)
def test_a_changed_setting_makes_it_anew(
    change: dict[str, object], pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    path, watch = table(tmp_path / "a.tsv", pairs), Watch()
    before = prepared(tmp_path / "c", path)
    after = prepare(
        DataSettings.parse({"pairs": [path], **change}),
        tmp_path / "c",
        report=watch,
        kind=TextPairs(),
        source=TextSource(),
    )
    assert "learning subwords" in watch.done
    assert after.fingerprint != before.fingerprint


def test_a_changed_file_makes_it_anew(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    path, valid = table(tmp_path / "a.tsv", pairs[:60]), table(tmp_path / "v.tsv", pairs[60:70])
    assert len(prepared(tmp_path / "c", path, valid_pairs=[valid]).train) == 60
    table(path, pairs[:50])
    assert len(prepared(tmp_path / "c", path, valid_pairs=[valid]).train) == 50
    table(valid, pairs[60:65])
    assert len(prepared(tmp_path / "c", path, valid_pairs=[valid]).valid) == 5
    as_long = path.read_text().replace("red", "RED")
    before = path.stat().st_mtime_ns
    path.write_text(as_long)
    os.utime(path, ns=(before, before + 1_000_000))
    changed = prepared(tmp_path / "c", path, valid_pairs=[valid])
    assert any("RED" in source for source, _ in texts(changed.train))


STAGES = ["reading", "learning subwords", "tokenizing the source", "tokenizing the target"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("there", [False, True])
def test_a_stop_in_the_middle_leaves_no_half_corpus(
    there: bool, stage: str, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    path = table(tmp_path / "a.tsv", pairs[:60])
    if there:
        prepared(tmp_path / "c", path, valid_size=2)
    with pytest.raises(KeyboardInterrupt):
        prepare(DataSettings(pairs=(path,)), tmp_path / "c", report=Watch(stage), kind=TextPairs(), source=TextSource())
    assert (tmp_path / "c").exists() == there
    for folder in tmp_path.glob("c*"):
        assert (folder / "corpus.json").exists() == (folder.name == "c" and there)
    watch = Watch()
    corpus = prepare(DataSettings(pairs=(path,)), tmp_path / "c", report=watch, kind=TextPairs(), source=TextSource())
    assert set(watch.done) == set(STAGES)
    assert sorted(texts(corpus.train) + texts(corpus.valid)) == sorted(pairs[:60])
    assert [folder.name for folder in tmp_path.glob("c*")] == ["c"]


def test_a_stop_while_the_last_files_are_written_leaves_no_half_corpus(
    pairs: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(tmp_path / "a.tsv", pairs[:60])
    for place in range(2):
        count = iter(range(9))

        def save(*arguments: object, place: int = place) -> None:
            if next(count) == place:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(np, "save", save)
            with pytest.raises(KeyboardInterrupt):
                prepared(tmp_path / "c", path)
        assert not (tmp_path / "c").exists()
    assert len(prepared(tmp_path / "c", path).train) == 57


def test_a_stop_while_the_old_corpus_is_removed_can_be_recovered_from(
    pairs: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the old one is gone, the new one is not in its place: asking for the old one again must make it."""
    path = table(tmp_path / "a.tsv", pairs[:60])
    prepared(tmp_path / "c", path)
    whole_removal = shutil.rmtree

    def half_removal(folder: Path, **how: Any) -> None:
        if folder.name != "c":
            whole_removal(folder, **how)
            return
        for name in ("train.source.bin", "train.source.ends", "train.index.npy"):
            (folder / name).unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", half_removal)
        with pytest.raises(KeyboardInterrupt):
            prepared(tmp_path / "c", path, valid_size=9)
    corpus = prepared(tmp_path / "c", path)
    assert sorted(texts(corpus.train) + texts(corpus.valid)) == sorted(pairs[:60])


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "null"])
def test_a_damaged_description_makes_it_anew(content: str, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    path = table(tmp_path / "a.tsv", pairs[:20])
    prepared(tmp_path / "c", path)
    (tmp_path / "c" / "corpus.json").write_text(content)
    assert len(prepared(tmp_path / "c", path).train) == 19


@pytest.mark.parametrize(("limit", "most"), [("SAMPLED_LINES", 20), ("SAMPLED_BYTES", 600)])
def test_subwords_are_learnt_from_a_sample_of_much_text(
    limit: str, most: int, pairs: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[list[str]] = []

    def noted(lines: Iterable[str], *others: Any) -> SubwordTokenizer:
        given.append(list(lines))
        return train_tokenizer(given[-1], *others)

    monkeypatch.setattr(making, "train_tokenizer", noted)
    monkeypatch.setattr(making, limit, most)
    corpus = prepared(tmp_path / "corpus", table(tmp_path / "pairs.tsv", pairs), subwords={"joint": False})
    assert len(corpus.train) + len(corpus.valid) == len(pairs)
    for side, lines in enumerate(given):
        assert 0 < (len(lines) if limit == "SAMPLED_LINES" else len("".join(lines).encode())) <= most
        assert set(lines) <= {pair[side] for pair in pairs}


def test_more_examples_get_more_subwords() -> None:
    sizes = [vocabulary_size(count) for count in (1, 5_000, 50_000, 500_000, 5_000_000)]
    assert sizes == sorted(set(sizes))
