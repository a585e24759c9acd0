"""Text to text, in another language or otherwise transformed."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.tasks.base import TASKS, TEXT_SEARCH, Preset, Task, sequence_pipeline
from regard.tasks.synthetic_data import SyntheticData
from regard.tasks.training_defaults import RECURRENT, transformer

if TYPE_CHECKING:
    from regard.data.settings import DataSettings
    from regard.inference.loaded_run import LoadedRun
    from regard.inference.pipelines.base import Pipeline
    from regard.models.settings import ModelSettings


@TASKS.register("translation")
class Translation(Task):
    """text to text, such as a translation."""

    name, verb, output = "translation", "translate", "Translation"
    summary = "text to text, such as a translation"
    options = TEXT_SEARCH
    metrics = ("bleu", "chrf", "ter", "exact")
    default_presets = {"text": "transformer-tiny"}  # noqa: RUF012
    presets = (
        *(Preset(name, RECURRENT) for name in ("vanilla-rnn", "bahdanau", "luong", "luong-local", "hard")),
        Preset("conv", {**RECURRENT, "max_grad_norm": 0.1}),
        Preset("transformer-tiny", transformer(128)),
        Preset("transformer-small", transformer(256)),
        Preset("transformer-base", transformer(512)),
        Preset("deep-shallow", transformer(256)),
    )

    def recognizes(self, data: "DataSettings", modality: str) -> float:
        return 0.1 if modality == "text" else 0.0

    def synthetic(self) -> "SyntheticData":
        return Dates()

    def claims(self, model: "ModelSettings", *, truncate: bool) -> bool:
        reads_one_text = model.source.is_text and model.source.segments_of_text == 1
        return not truncate and reads_one_text and model.decoder.autoregressive

    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        return sequence_pipeline(run)


class Dates(SyntheticData):
    """Dates as written in many languages, to ISO 8601."""

    preset, steps = "bahdanau", 900
    counts: ClassVar = {"train": 24_000, "valid": 500, "test": 1_000}
    languages = ("en", "pt", "de", "vi")  # of the examples that are drawn
    by_token = True

    def settings(self, preset: dict[str, Any]) -> dict[str, Any]:
        """Characters, small models and batches, a learning rate that decays to zero."""
        model: dict[str, Any] = {}
        for side in ("encoder", "decoder"):
            kind = preset["model"][side]["kind"]
            small = {"kind": kind, "dropout": 0.1}
            model[side] = small if kind == "transformer" else {**small, "width": 128, "embedding": 64}
        return {
            "model": model,
            "data": {"subwords": {"kind": "character", "size": 1200, "coverage": 1.0}},
            "training": {"batch_tokens": 2048, "learning_rate": 3e-3},
        }

    def write(self, folder: Path, seed: int) -> None:
        from regard.data.synthetic import dates

        for split, count in self.counts.items():
            lines = [f"{text}\t{date}\n" for text, date in dates.pairs(count, split=split, seed=seed)]
            (folder / f"{split}.tsv").write_text("".join(lines), "utf-8")

    def attention_examples(self, folder: Path, seed: int) -> list[Any]:
        from regard.data.synthetic import dates

        held_out = [date for _, date in dates.pairs(len(self.languages), split="test", seed=seed + 1)]
        texts = [dates.write_full_date(date, locale) for date, locale in zip(held_out, self.languages, strict=True)]
        random.Random(seed).shuffle(texts)
        return texts

    def describe_accuracy(self, count: int) -> str:
        return f"{count:,} dates that were held out are read exactly right"
