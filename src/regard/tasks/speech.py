"""Recordings to text."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.tasks.base import SEARCH, TASKS, Preset, Task, sequence_pipeline
from regard.tasks.synthetic_data import SyntheticData, SyntheticFiles
from regard.tasks.training_defaults import RECURRENT, TRANSFORMER

if TYPE_CHECKING:
    from regard.data.settings import DataSettings
    from regard.inference.loaded_run import LoadedRun
    from regard.inference.pipelines.base import Pipeline
    from regard.models.settings import ModelSettings


CHARACTER_TOKENS = {"subwords": {"kind": "character"}}


@TASKS.register("speech")
class Speech(Task):
    """speech to text."""

    name, verb, output = "speech", "transcribe", "Transcript"
    summary = "speech to text"
    options = SEARCH
    metrics = ("wer", "cer", "exact")
    default_presets = {"audio": "listen-attend-spell"}  # noqa: RUF012
    presets = (
        Preset(
            "listen-attend-spell",
            {**RECURRENT, "batch_tokens": 2048, "metric": "wer", "ema_decay": 0.99},
            CHARACTER_TOKENS,
        ),
        Preset(
            "speech-transformer",
            {**TRANSFORMER, "batch_tokens": 4096, "metric": "wer", "learning_rate": 2e-3},
            CHARACTER_TOKENS,
        ),
    )
    input_example = "recording.wav"

    def recognizes(self, data: "DataSettings", modality: str) -> float:
        return 0.1 if modality == "audio" else 0.0

    def synthetic(self) -> "SyntheticData":
        return Digits()

    def claims(self, model: "ModelSettings", *, truncate: bool) -> bool:
        return model.source.kind == "audio" and model.decoder.autoregressive

    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        return sequence_pipeline(run)


class Digits(SyntheticFiles):
    """Digits spoken by a synthesizer, to words."""

    preset, steps = "listen-attend-spell", 600
    counts: ClassVar = {"train": 3_000, "valid": 150, "test": 300}
    next_command = "train recordings.tsv -o run"

    def settings(self, preset: dict[str, Any]) -> dict[str, Any]:
        return {
            "model": {"source": {"kind": "audio", "sample_rate": 8_000, "mel_bins": 40}},
            "data": {"subwords": {"kind": "word"}},
            "training": {"batch_tokens": 2048, "learning_rate": 2e-3},
        }

    def write(self, folder: Path, seed: int) -> None:
        import soundfile

        from regard.data.synthetic.spoken_digits import RATE, digit_strings

        for split, count in self.counts.items():
            (folder / split).mkdir()
            lines = []
            for number, (words, samples) in enumerate(digit_strings(count, split=split, seed=seed)):
                soundfile.write(folder / split / f"{number}.wav", samples, RATE, subtype="PCM_16")
                lines.append(json.dumps({"file": f"{split}/{number}.wav", "captions": [words]}) + "\n")
            (folder / f"{split}.jsonl").write_text("".join(lines), "utf-8")

    def describe_accuracy(self, count: int) -> str:
        return f"{count:,} recordings by voices that were held out are written down exactly right"
