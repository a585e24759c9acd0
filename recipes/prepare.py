"""Public data sets as files that regard reads. Each part of this script knows one data set's own format.

python recipes/prepare.py trec      FOLDER OUT    TREC questions: train.tsv, test.tsv (label, text)
python recipes/prepare.py polarity  FOLDER OUT    rt-polarity, 10 % held out by --seed: train.tsv, test.tsv
python recipes/prepare.py emoji     FOLDER OUT    captions of emoji: train.jsonl, test.jsonl; skin tones held out
python recipes/prepare.py fsdd      FOLDER OUT    spoken digits joined to strings of 2 to 6: train, test, and the
                                                  same without one speaker: unheard-train, unheard-test
python recipes/prepare.py babi      FOLDER OUT    stories and questions: train.jsonl, test.jsonl, 10 % of stories
python recipes/prepare.py digits    FOLDER OUT    spoken digits, each as a series of 20 energies: train.tsv, test.tsv
python recipes/prepare.py ett       FOLDER OUT    ETTh1 by months: train.csv (12), valid.csv and test.csv (4 each), the
                                                  latter with the 512 hours before them
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

from regard.data.log_mel import log_mel_frames
from regard.models.settings import AudioSource

STRING_COUNTS = {"train": 12_000, "test": 1_000}  # of digits
MAX_PAUSE_SECONDS = 0.08  # seconds between digits, at most


def lines(path: Path, encoding: str = "utf-8") -> list[str]:
    return path.read_text(encoding).splitlines()


def write(path: Path, rows: list[str]) -> None:
    path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    print(f"{path}: {len(rows):,} lines")


def trec(folder: Path, out: Path, seed: int) -> None:
    for split in ("train", "test"):
        rows = [re.sub(r":\w+ ", "\t", line, count=1) for line in lines(folder / f"trec_{split}.txt")]
        write(out / f"{split}.tsv", ["label\ttext", *rows])


def polarity(folder: Path, out: Path, seed: int) -> None:
    rows = [f"{side}\t{line.strip()}" for side in ("pos", "neg") for line in lines(folder / f"rt-polarity.{side}")]
    random.Random(seed).shuffle(rows)
    test_size = len(rows) // 10
    write(out / "test.tsv", ["label\ttext", *rows[:test_size]])
    write(out / "train.tsv", ["label\ttext", *rows[test_size:]])


def emoji(folder: Path, out: Path, seed: int) -> None:
    """One combination of every emoji with skin tones is held out; the others are training data."""
    records = [json.loads(line) for line in lines(folder / "captions.jsonl")]
    with_skin_tones = defaultdict(list)
    for number, record in enumerate(records):
        if "skin tone" in record["en"]:
            with_skin_tones[record["base"]].append(number)
    held_out = set()
    for base, numbers in with_skin_tones.items():
        if len(numbers) > 1:
            index = int.from_bytes(hashlib.sha256(f"{seed} {base}".encode()).digest()[:4], "big")
            held_out.add(numbers[index % len(numbers)])
    for split, is_test in (("test", True), ("train", False)):
        selected = [record for number, record in enumerate(records) if (number in held_out) == is_test]
        write(out / f"{split}.jsonl", [json.dumps(record, ensure_ascii=False) for record in selected])


DIGIT_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def fsdd(folder: Path, out: Path, seed: int) -> None:
    """Strings of digits by one speaker; recordings 0 to 4 of each digit are for the test, as the set's makers say."""
    recordings = defaultdict(list)
    for path in sorted((folder / "recordings").glob("*.wav")):
        digit, speaker, number = path.stem.split("_")
        recordings[speaker, int(number) < 5, int(digit)].append(path)
    speakers = sorted({speaker for speaker, _, _ in recordings})
    (out / "strings").mkdir(parents=True, exist_ok=True)
    generator = random.Random(seed)
    tables = defaultdict(list)
    for split, count in STRING_COUNTS.items():
        for number in range(count):
            speaker = generator.choice(speakers)
            digits = [generator.randrange(10) for _ in range(generator.randint(2, 6))]
            samples_by_digit = []
            for digit in digits:
                samples, rate = soundfile.read(
                    generator.choice(recordings[speaker, split == "test", digit]), dtype="float32"
                )
                samples_by_digit += [samples, np.zeros(int(generator.random() * MAX_PAUSE_SECONDS * rate), np.float32)]
            name = f"strings/{split}-{number}.wav"
            soundfile.write(out / name, np.concatenate(samples_by_digit), rate, subtype="PCM_16")
            row = f"{name}\t{' '.join(DIGIT_NAMES[digit] for digit in digits)}"
            tables[split].append(row)
            is_unheard_speaker = speaker == speakers[-1]
            if is_unheard_speaker == (split == "test"):
                tables[f"unheard-{split}"].append(row)
    for name, rows in tables.items():
        write(out / f"{name}.tsv", ["file\ttranscript", *rows])


def babi(folder: Path, out: Path, seed: int) -> None:
    """A story ends where line numbers start again at 1; each question is an example with the preceding sentences."""
    splits: dict[str, list[str]] = {"train": [], "test": []}
    story: list[str] = []
    generator = random.Random(seed)
    split = "train"
    for line in lines(folder / "all_shuffled_train.txt"):
        number, _, text = line.partition(" ")
        if number == "1":
            story, split = [], "test" if generator.random() < 0.1 else "train"
        if "\t" not in text:
            story.append(text.strip())
            continue
        question, answer, *_ = text.split("\t")
        record = {"story": " ".join(story), "question": question.strip(), "answer": answer.strip()}
        splits[split].append(json.dumps({name: separate_punctuation(value) for name, value in record.items()}))
    for name, rows in splits.items():
        write(out / f"{name}.jsonl", rows)


def separate_punctuation(text: str) -> str:
    """Separate punctuation from words by spaces."""
    return re.sub(r"([.,?])", r" \1 ", text).strip().replace("  ", " ")


def digits(folder: Path, out: Path, seed: int) -> None:
    """Every recording is a file of numbers [frames, 20]; recordings 0 to 4 of each digit are the test."""
    settings = AudioSource(sample_rate=8000, mel_bins=20)
    (out / "series").mkdir(parents=True, exist_ok=True)
    rows = defaultdict(list)
    for path in sorted((folder / "recordings").glob("*.wav")):
        digit, _, number = path.stem.split("_")
        samples, rate = soundfile.read(path, dtype="float32")
        np.save(out / "series" / f"{path.stem}.npy", log_mel_frames((samples, rate), settings).astype(np.float32))
        rows["test" if int(number) < 5 else "train"].append(f"series/{path.stem}.npy\t{DIGIT_NAMES[int(digit)]}")
    for split, lines_of_split in rows.items():
        write(out / f"{split}.tsv", ["file\tlabel", *lines_of_split])


ETT_SPLITS = {"train": (0, 8640), "valid": (8640, 11_520), "test": (11_520, 14_400)}  # rows
ETT_HISTORY = 512  # rows before a split that its first forecasts are made from


def ett(folder: Path, out: Path, seed: int) -> None:
    header, *rows = lines(folder / "ETTh1.csv")
    for split, (start, end) in ETT_SPLITS.items():
        write(out / f"{split}.csv", [header, *rows[max(0, start - ETT_HISTORY) : end]])


def main() -> None:
    functions = (trec, polarity, emoji, fsdd, babi, digits, ett)
    datasets = {function.__name__: function for function in functions}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=datasets)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    datasets[arguments.name](arguments.folder, arguments.out, arguments.seed)


if __name__ == "__main__":
    main()
