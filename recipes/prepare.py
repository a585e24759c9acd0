"""Public data sets as files that regard reads. Each part of this script knows one data set's own format.

python recipes/prepare.py trec      FOLDER OUT    TREC questions: train.tsv, test.tsv (label, text)
python recipes/prepare.py polarity  FOLDER OUT    rt-polarity, 10 % held out by --seed: train.tsv, test.tsv
python recipes/prepare.py emoji     FOLDER OUT    captions of emoji: train.jsonl, test.jsonl; skin tones held out
python recipes/prepare.py fsdd      FOLDER OUT    spoken digits joined to strings of 2 to 6: train, test, and the
                                                  same without one speaker: unheard-train, unheard-test
python recipes/prepare.py babi      FOLDER OUT    stories and questions: train.jsonl, test.jsonl, 10 % of stories
"""

import argparse
import hashlib
import json
import random
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import soundfile

STRINGS = {"train": 12_000, "test": 1_000}  # of digits
PAUSE = 0.08  # seconds between digits, at most


def lines(path: Path, encoding: str = "utf-8") -> list[str]:
    return path.read_text(encoding).splitlines()


def write(path: Path, rows: list[str]) -> None:
    path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    print(f"{path}: {len(rows):,} lines")


def trec(folder: Path, out: Path, seed: int) -> None:
    for part in ("train", "test"):
        rows = [re.sub(r":\w+ ", "\t", line, count=1) for line in lines(folder / f"trec_{part}.txt")]
        write(out / f"{part}.tsv", ["label\ttext", *rows])


def polarity(folder: Path, out: Path, seed: int) -> None:
    rows = [f"{side}\t{line.strip()}" for side in ("pos", "neg") for line in lines(folder / f"rt-polarity.{side}")]
    random.Random(seed).shuffle(rows)
    cut = len(rows) // 10
    write(out / "test.tsv", ["label\ttext", *rows[:cut]])
    write(out / "train.tsv", ["label\ttext", *rows[cut:]])


def emoji(folder: Path, out: Path, seed: int) -> None:
    """Of every emoji that has skin tones, one combination is held out; its others stay."""
    records = [json.loads(line) for line in lines(folder / "captions.jsonl")]
    toned = defaultdict(list)
    for number, record in enumerate(records):
        if "skin tone" in record["en"]:
            toned[record["base"]].append(number)
    held = set()
    for base, numbers in toned.items():
        if len(numbers) > 1:
            draw = int.from_bytes(hashlib.sha256(f"{seed} {base}".encode()).digest()[:4], "big")
            held.add(numbers[draw % len(numbers)])
    for part, wanted in (("test", True), ("train", False)):
        chosen = [record for number, record in enumerate(records) if (number in held) == wanted]
        write(out / f"{part}.jsonl", [json.dumps(record, ensure_ascii=False) for record in chosen])


NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def fsdd(folder: Path, out: Path, seed: int) -> None:
    """Strings of digits by one speaker; recordings 0 to 4 of each digit are for the test, as the set's makers say."""
    spoken = defaultdict(list)
    for path in sorted((folder / "recordings").glob("*.wav")):
        digit, speaker, number = path.stem.split("_")
        spoken[speaker, int(number) < 5, int(digit)].append(path)
    speakers = sorted({speaker for speaker, _, _ in spoken})
    (out / "strings").mkdir(parents=True, exist_ok=True)
    dice = random.Random(seed)
    tables = defaultdict(list)
    for part, count in STRINGS.items():
        for number in range(count):
            speaker = dice.choice(speakers)
            digits = [dice.randrange(10) for _ in range(dice.randint(2, 6))]
            pieces = []
            for digit in digits:
                samples, rate = soundfile.read(dice.choice(spoken[speaker, part == "test", digit]), dtype="float32")
                pieces += [samples, np.zeros(int(dice.random() * PAUSE * rate), np.float32)]
            name = f"strings/{part}-{number}.wav"
            soundfile.write(out / name, np.concatenate(pieces), rate, subtype="PCM_16")
            row = f"{name}\t{' '.join(NAMES[digit] for digit in digits)}"
            tables[part].append(row)
            unheard = speaker == speakers[-1]
            if unheard == (part == "test"):
                tables[f"unheard-{part}"].append(row)
    for name, rows in tables.items():
        write(out / f"{name}.tsv", ["file\ttranscript", *rows])


def babi(folder: Path, out: Path, seed: int) -> None:
    """A story goes on until the line numbers begin again; each question is an example with what stood before."""
    parts: dict[str, list[str]] = {"train": [], "test": []}
    said: list[str] = []
    dice = random.Random(seed)
    part = "train"
    for line in lines(folder / "all_shuffled_train.txt"):
        number, _, text = line.partition(" ")
        if number == "1":
            said, part = [], "test" if dice.random() < 0.1 else "train"
        if "\t" not in text:
            said.append(text.strip())
            continue
        question, answer, *_ = text.split("\t")
        record = {"story": " ".join(said), "question": question.strip(), "answer": answer.strip()}
        parts[part].append(json.dumps({name: spaced(value) for name, value in record.items()}))
    for name, rows in parts.items():
        write(out / f"{name}.jsonl", rows)


def spaced(text: str) -> str:
    """Punctuation apart, so that words are words."""
    return re.sub(r"([.,?])", r" \1 ", text).strip().replace("  ", " ")


def main() -> None:
    kinds = {"trec": trec, "polarity": polarity, "emoji": emoji, "fsdd": fsdd, "babi": babi}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=kinds)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    kinds[given.name](given.folder, given.out, given.seed)


if __name__ == "__main__":
    main()
