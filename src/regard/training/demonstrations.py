"""Tasks on data made by code: what is made, how it is learnt, judged and drawn."""

import json
import random
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from regard.inference.translator import Translator
from regard.models.presets import preset as settings_named
from regard.settings import merged

MARK = "made-by-regard-demo"  # a file in the folder of a demonstration, which may be removed for the next
CHARACTERS = {"kind": "character", "size": 1200, "coverage": 1.0}
SCHEDULE = {
    "metric": "exact",
    "schedule": "cosine",
    "warmup": 50,
    "smoothing": 0.0,
    "best": 1,
    "validate_every": 400,
}


class Tested(NamedTuple):
    """How well held-out examples were done."""

    exact: float
    examples: int


class Demonstration(ABC):
    """One task."""

    preset: ClassVar[str]
    steps: ClassVar[int]
    next: ClassVar[str] = "train pairs.tsv -o run"
    counts: ClassVar[dict[str, int]]  # examples of each part
    suffix: ClassVar[str] = "tsv"

    def settings(self, name: str, output: Path) -> dict[str, Any]:
        """Of a run with this preset in this folder."""
        files = {part: str((output / f"{part}.{self.suffix}").absolute()) for part in ("train", "valid")}
        data = {"pairs": [files["train"]], "valid_pairs": [files["valid"]]}
        return merged({"data": data, "training": SCHEDULE}, self.suits(name))

    @abstractmethod
    def suits(self, name: str) -> dict[str, Any]:
        """What is set beside, with this preset."""

    @abstractmethod
    def write(self, output: Path, seed: int) -> None:
        """The files of all parts."""

    @abstractmethod
    def tests(self, output: Path) -> list[tuple[Any, list[str]]]:
        """Sources as the model is given them, and what may be said to each."""

    @abstractmethod
    def sentence(self, count: int) -> str:
        """What was done right, in words."""

    def shown(self, output: Path, seed: int) -> list[Any]:
        """Sources that are drawn."""
        return [source for source, _ in self.tests(output)[:3]]

    def judge(self, translator: Translator, output: Path) -> Tested:
        """Of the held-out examples."""
        from regard.evaluation.metrics.exact_match import is_exact_match

        tests = self.tests(output)
        results = translator.translate([source for source, _ in tests], beam=1)
        right = [
            any(is_exact_match(r.text, each) for each in known) for r, (_, known) in zip(results, tests, strict=True)
        ]
        return Tested(100 * sum(right) / len(right), len(right))

    def draw(self, translator: Translator, output: Path, seed: int) -> list[dict[str, Any]]:
        """A few examples with their attention, in the terminal and as one picture."""
        from regard.views.alignment_plot import Alignment, write_picture
        from regard.views.overlay import in_terminal, write_overlay
        from regard.views.terminal import matrix

        drawn: list[dict[str, Any]] = []
        alignments: list[Alignment] = []
        overlays: list[Any] = []
        for given in self.shown(output, seed):
            result = translator.translate([given])[0]
            source = Path(given).name if isinstance(given, Path) else str(given)
            record: dict[str, Any] = {"source": source, "text": result.text, "drawing": "(this model does not attend)"}
            seen = translator.attend(given, result)
            if seen.kinds:
                seen = seen.without_special() if self.by_pieces else seen.without_special().merged()
                weights = seen.matrix("cross", -1)
                record |= {"attention": weights.tolist(), "pieces": list(seen.target.labels)}
                record["source_pieces"] = list(seen.source.labels)
                if seen.shown is not None:
                    record["drawing"] = in_terminal(seen, weights)
                    overlays.append((f"{source}: {result.text}", seen, weights))
                else:
                    record["drawing"] = matrix(weights.tolist(), seen.source.labels, seen.target.labels)
                    alignments.append(Alignment(seen.source.labels, seen.target.labels, weights.tolist()))
            drawn.append(record)
        if overlays:
            write_overlay(overlays, output / "attention.png")
        elif alignments:
            write_picture(alignments, output / "attention.png")
        return drawn

    by_pieces: ClassVar[bool] = False  # whether attention is drawn piece by piece, not by words


class Dates(Demonstration):
    """Dates people write in many languages, to ISO 8601."""

    preset, steps = "bahdanau", 900
    counts: ClassVar = {"train": 24_000, "valid": 500, "test": 1_000}
    languages = ("en", "pt", "de", "vi")  # of the examples that are drawn
    by_pieces = True

    def suits(self, name: str) -> dict[str, Any]:
        """Characters, small models and batches, a rate that falls to zero with the last step."""
        model: dict[str, Any] = {}
        for side in ("encoder", "decoder"):
            kind = settings_named(name)["model"][side]["kind"]
            small = {"kind": kind, "dropout": 0.1}
            model[side] = small if kind == "transformer" else {**small, "width": 128, "embedding": 64}
        return {
            "model": model,
            "data": {"subwords": CHARACTERS},
            "training": {"tokens": 2048, "learning_rate": 3e-3},
        }

    def write(self, output: Path, seed: int) -> None:
        from regard.data.synthetic import dates

        for part, count in self.counts.items():
            lines = [f"{text}\t{date}\n" for text, date in dates.pairs(count, split=part, seed=seed)]
            (output / f"{part}.tsv").write_text("".join(lines), "utf-8")

    def tests(self, output: Path) -> list[tuple[Any, list[str]]]:
        lines = [line.split("\t") for line in (output / "test.tsv").read_text("utf-8").splitlines()]
        return [(source, [target]) for source, target in lines]

    def shown(self, output: Path, seed: int) -> list[Any]:
        from regard.data.synthetic import dates

        held_out = [date for _, date in dates.pairs(len(self.languages), split="test", seed=seed + 1)]
        texts = [dates.write_full_date(date, locale) for date, locale in zip(held_out, self.languages, strict=True)]
        random.Random(seed).shuffle(texts)
        return texts

    def sentence(self, count: int) -> str:
        return f"{count:,} dates that were held out are read exactly right"


class _Files(Demonstration):
    """Sources that are files, named by tables of JSON lines."""

    suffix = "jsonl"

    def tests(self, output: Path) -> list[tuple[Any, list[str]]]:
        records = [json.loads(line) for line in (output / "test.jsonl").read_text("utf-8").splitlines()]
        return [(output / record["file"], record["captions"]) for record in records]


class Scenes(_Files):
    """Drawn scenes of coloured shapes, to captions."""

    preset, steps = "show-attend-tell", 550
    counts: ClassVar = {"train": 5_000, "valid": 200, "test": 300}
    next = "train captions.jsonl --media pictures -o run"

    def suits(self, name: str) -> dict[str, Any]:
        """Few and simple things: fewer convolutions, and little dropout."""
        given = settings_named(name)["model"]
        cut = {"stride": 4, "widths": [48, 96]} if given["source"]["cut"]["kind"] == "residual" else {}
        return {
            "model": {
                "source": {"kind": "images", "cut": {**given["source"]["cut"], **cut}},
                "encoder": {"kind": given["encoder"]["kind"], "dropout": 0.1},
                "decoder": {"kind": given["decoder"]["kind"], "dropout": 0.1},
            },
            "data": {
                "subwords": {"kind": "word"},
                "augment": {"turn": 0.0, "zoom": 0.05, "light": 0.05, "shift": 0.03},
            },
            "training": {"tokens": 4096, "learning_rate": 2e-3, "attend_everywhere": 0.0},
        }

    def write(self, output: Path, seed: int) -> None:
        from regard.data.synthetic.scenes import scenes

        for part, count in self.counts.items():
            (output / part).mkdir()
            lines = []
            for number, (scene, picture) in enumerate(scenes(count, split=part, seed=seed)):
                picture.save(output / part / f"{number}.png")
                record = {"file": f"{part}/{number}.png", "captions": [scene.caption]}
                lines.append(json.dumps(record) + "\n")
            (output / f"{part}.jsonl").write_text("".join(lines), "utf-8")

    def sentence(self, count: int) -> str:
        return f"{count:,} pictures of combinations that were held out are described exactly right"


class Digits(_Files):
    """Digits spoken by a synthesiser, to words."""

    preset, steps = "listen-attend-spell", 600
    counts: ClassVar = {"train": 3_000, "valid": 150, "test": 300}
    next = "train recordings.tsv -o run"

    def suits(self, name: str) -> dict[str, Any]:
        return {
            "model": {"source": {"kind": "speech", "rate": 8_000, "mels": 40}},
            "data": {"subwords": {"kind": "word"}},
            "training": {"tokens": 2048, "learning_rate": 2e-3},
        }

    def write(self, output: Path, seed: int) -> None:
        import soundfile

        from regard.data.synthetic.spoken_digits import RATE, digit_strings

        for part, count in self.counts.items():
            (output / part).mkdir()
            lines = []
            for number, (words, samples) in enumerate(digit_strings(count, split=part, seed=seed)):
                soundfile.write(output / part / f"{number}.wav", samples, RATE, subtype="PCM_16")
                lines.append(json.dumps({"file": f"{part}/{number}.wav", "captions": [words]}) + "\n")
            (output / f"{part}.jsonl").write_text("".join(lines), "utf-8")

    def sentence(self, count: int) -> str:
        return f"{count:,} recordings by voices that were held out are written down exactly right"


class Notices(Demonstration):
    """Notices, each to one line, with names that no other has."""

    preset, steps = "pointer-generator", 400
    counts: ClassVar = {"train": 8_000, "valid": 200, "test": 400}
    next = "train texts.tsv --task summarise -o run"

    def suits(self, name: str) -> dict[str, Any]:
        return {"data": {"subwords": {"size": 600}}, "training": {"tokens": 4096, "learning_rate": 3e-3}}

    def write(self, output: Path, seed: int) -> None:
        from regard.data.synthetic.notices import notices

        for part, count in self.counts.items():
            lines = [f"{text}\t{said}\n" for text, said in notices(count, split=part, seed=seed)]
            (output / f"{part}.tsv").write_text("".join(lines), "utf-8")

    def tests(self, output: Path) -> list[tuple[Any, list[str]]]:
        lines = [line.split("\t") for line in (output / "test.tsv").read_text("utf-8").splitlines()]
        return [(source, [target]) for source, target in lines]

    def sentence(self, count: int) -> str:
        return f"{count:,} notices that were held out are put into one line exactly right"


class Stories(Demonstration):
    """Stories and questions, to answers."""

    preset, steps = "answer", 1400
    counts: ClassVar = {"train": 12_000, "valid": 300, "test": 500}
    next = "train questions.tsv --task answer -o run"

    def suits(self, name: str) -> dict[str, Any]:
        return {
            "model": {"source": {"kind": "text", "segments": 2}},
            "data": {"subwords": {"kind": "word"}, "source_column": 1, "question_column": 2, "target_column": 3},
            "training": {"tokens": 2048, "learning_rate": 1.5e-3},
        }

    def write(self, output: Path, seed: int) -> None:
        from regard.data.synthetic.stories import stories

        for part, count in self.counts.items():
            lines = ["\t".join(each) + "\n" for each in stories(count, split=part, seed=seed)]
            (output / f"{part}.tsv").write_text("".join(lines), "utf-8")

    def tests(self, output: Path) -> list[tuple[Any, list[str]]]:
        lines = [line.split("\t") for line in (output / "test.tsv").read_text("utf-8").splitlines()]
        return [(f"{story}\t{question}", [answer]) for story, question, answer in lines]

    def sentence(self, count: int) -> str:
        return f"{count:,} questions about stories that were held out are answered right"


DEMONSTRATIONS: dict[str, Demonstration] = {
    "translate": Dates(),
    "caption": Scenes(),
    "speech": Digits(),
    "summarise": Notices(),
    "answer": Stories(),
}
