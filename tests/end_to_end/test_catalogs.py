"""Message catalogs: all placeholders and tags survive training and translation."""

import random
import re
from collections import Counter
from pathlib import Path

import polib
import pytest

import regard
from tests.end_to_end.commands import run_regard

PLACEHOLDERS = re.compile(r"%\([a-z]+\)[sd]|%[sd]|\{[a-z]*\}|</?[a-z]+>|&[a-z]+;")
NOUNS = {"file": "Datei", "page": "Seite", "user": "Person", "folder": "Mappe", "list": "Liste", "key": "Taste"}
VERBS = {"open": "öffnen", "close": "schließen", "find": "finden", "copy": "kopieren", "move": "verschieben"}
NAMES = ["name", "count", "path", "title", "who", "where"]


def messages(count: int, seed: int) -> list[tuple[str, str]]:
    """Messages of an application with placeholders, and translations with the placeholders in another order."""
    rng = random.Random(seed)
    pairs = []
    for _ in range(count):
        noun, verb = rng.choice(list(NOUNS)), rng.choice(list(VERBS))
        first, second = rng.sample(NAMES, 2)
        source, target = rng.choice(
            [
                (f"{verb} the {noun} {{{first}}}", f"die {NOUNS[noun]} {{{first}}} {VERBS[verb]}"),
                (f"cannot {verb} %s", f"%s ist nicht zu {VERBS[verb]}"),
                (f"%d of %d: {verb} the {noun}", f"die {NOUNS[noun]} {VERBS[verb]}: %d von %d"),
                (f"<b>%({first})s</b> &amp; the {noun}", f"die {NOUNS[noun]} &amp; <b>%({first})s</b>"),
                (f"{verb} the {noun}", f"die {NOUNS[noun]} {VERBS[verb]}"),
                (f"{{{first}}} to {{{second}}}: {verb}", f"von {{{first}}} nach {{{second}}} {VERBS[verb]}"),
            ]
        )
        pairs.append((source, target))
    return pairs


def catalog(path: Path, pairs: list[tuple[str, str]], *, filled: bool) -> Path:
    lines = ['msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n']
    lines += [f'msgctxt "{n}"\nmsgid "{s}"\nmsgstr "{t if filled else ""}"\n' for n, (s, t) in enumerate(pairs)]
    path.write_text("\n".join(lines), "utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["transformer-tiny", "bahdanau"])
def test_translations_keep_every_placeholder(tmp_path: Path, preset: str) -> None:
    data = catalog(tmp_path / "train.po", messages(1500, 1), filled=True)
    kind = [
        "--set",
        "training.learning_rate=3e-3",
        "--set",
        "training.warmup_steps=30",
        "--set",
        "data.subwords.size=500",
    ]
    run_regard("train", data, "--preset", preset, "--steps", 150, *kind, "-o", tmp_path / "run")
    model_settings = (tmp_path / "run" / "model.toml").read_text()
    for name in ("printf", "brace", "tag", "entity"):
        assert f'{name} = "symbol"' in model_settings
    # Placeholders of the trained kinds that are not in the training data.
    held_out = messages(150, 2)
    unseen = [(s.replace("{name}", "{anything}").replace("%s", "%(file)s"), t) for s, t in messages(50, 3)]
    empty = catalog(
        tmp_path / "new.po", [*held_out, *unseen, ("<i>open</i> <b>the file</b> %d &lt;", "")], filled=False
    )
    stdout = run_regard("translate", tmp_path / "run", empty, "-o", tmp_path / "out.po", "--json").stdout
    assert '"missing": []' in stdout
    entries = [entry for entry in polib.pofile(str(tmp_path / "out.po")) if entry.msgid]
    assert len(entries) == 201
    for entry in entries:
        assert entry.msgstr
        assert entry.fuzzy
        assert Counter(PLACEHOLDERS.findall(entry.msgid)) == Counter(PLACEHOLDERS.findall(entry.msgstr)), entry.msgid
    matches = sum(entry.msgstr == target for entry, (_, target) in zip(entries, held_out, strict=False))
    assert matches > 75, "the model has learned to translate"
    sampled = regard.load(tmp_path / "run").translate([s for s, _ in held_out[:20]], temperature=1.5)
    for result in sampled:
        assert Counter(PLACEHOLDERS.findall(result.source)) == Counter(PLACEHOLDERS.findall(result.text))
