"""Catalogues of an application: placeholders and tags survive training and translating, every one of them."""

import random
import re
from collections import Counter
from pathlib import Path

import polib
import pytest

import regard as package
from tests.end_to_end.runs import regard

MARKS = re.compile(r"%\([a-z]+\)[sd]|%[sd]|\{[a-z]*\}|</?[a-z]+>|&[a-z]+;")
THINGS = {"file": "Datei", "page": "Seite", "user": "Person", "folder": "Mappe", "list": "Liste", "key": "Taste"}
VERBS = {"open": "öffnen", "close": "schließen", "find": "finden", "copy": "kopieren", "move": "verschieben"}
NAMES = ["name", "count", "path", "title", "who", "where"]


def messages(count: int, seed: int) -> list[tuple[str, str]]:
    """Messages as applications have them, and their translations, in which things stand elsewhere."""
    dice = random.Random(seed)
    made = []
    for _ in range(count):
        thing, verb = dice.choice(list(THINGS)), dice.choice(list(VERBS))
        one, two = dice.sample(NAMES, 2)
        source, target = dice.choice(
            [
                (f"{verb} the {thing} {{{one}}}", f"die {THINGS[thing]} {{{one}}} {VERBS[verb]}"),
                (f"cannot {verb} %s", f"%s ist nicht zu {VERBS[verb]}"),
                (f"%d of %d: {verb} the {thing}", f"die {THINGS[thing]} {VERBS[verb]}: %d von %d"),
                (f"<b>%({one})s</b> &amp; the {thing}", f"die {THINGS[thing]} &amp; <b>%({one})s</b>"),
                (f"{verb} the {thing}", f"die {THINGS[thing]} {VERBS[verb]}"),
                (f"{{{one}}} to {{{two}}}: {verb}", f"von {{{one}}} nach {{{two}}} {VERBS[verb]}"),
            ]
        )
        made.append((source, target))
    return made


def catalog(path: Path, pairs: list[tuple[str, str]], *, filled: bool) -> Path:
    lines = ['msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n']
    lines += [f'msgctxt "{n}"\nmsgid "{s}"\nmsgstr "{t if filled else ""}"\n' for n, (s, t) in enumerate(pairs)]
    path.write_text("\n".join(lines), "utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["transformer-tiny", "bahdanau"])
def test_placeholders_come_out_as_often_as_they_went_in(tmp_path: Path, preset: str) -> None:
    data = catalog(tmp_path / "train.po", messages(1500, 1), filled=True)
    kind = ["--set", "training.learning_rate=3e-3", "--set", "training.warmup=30", "--set", "data.subwords.size=500"]
    regard("train", data, "--preset", preset, "--steps", 150, *kind, "-o", tmp_path / "run")
    kept = (tmp_path / "run" / "model.toml").read_text()
    for name in ("printf", "brace", "tag", "entity"):
        assert f'{name} = "symbol"' in kept
    # Others than were learnt from, of kinds that were: a name nobody has seen, a tag more, a number less.
    held_out = messages(150, 2)
    strange = [(s.replace("{name}", "{anything}").replace("%s", "%(file)s"), t) for s, t in messages(50, 3)]
    empty = catalog(
        tmp_path / "new.po", [*held_out, *strange, ("<i>open</i> <b>the file</b> %d &lt;", "")], filled=False
    )
    said = regard("translate", tmp_path / "run", empty, "-o", tmp_path / "out.po", "--json").stdout
    assert '"lost": []' in said
    entries = [entry for entry in polib.pofile(str(tmp_path / "out.po")) if entry.msgid]
    assert len(entries) == 201
    for entry in entries:
        assert entry.msgstr
        assert entry.fuzzy
        assert Counter(MARKS.findall(entry.msgid)) == Counter(MARKS.findall(entry.msgstr)), entry.msgid
    right = sum(entry.msgstr == target for entry, (_, target) in zip(entries, held_out, strict=False))
    assert right > 75, "it has learnt something, too"
    sampled = package.load(tmp_path / "run").translate([s for s, _ in held_out[:20]], temperature=1.5)
    for result in sampled:
        assert Counter(MARKS.findall(result.source)) == Counter(MARKS.findall(result.text))
