"""Images to text."""

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


CAPTION_TRAINING = {"batch_tokens": 4096, "metric": "chrf", "ema_decay": 0.999}


@TASKS.register("captioning")
class Captioning(Task):
    """image to text."""

    name, verb, output = "captioning", "caption", "Caption"
    summary = "image to text"
    options = SEARCH
    metrics = ("chrf", "bleu1", "bleu2", "bleu3", "bleu", "rougeL", "cider", "exact")
    default_presets = {"image": "show-attend-tell"}  # noqa: RUF012
    presets = (
        Preset("show-attend-tell", {**RECURRENT, **CAPTION_TRAINING, "doubly_stochastic": 0.01}),
        Preset("show-attend-tell-hard", {**RECURRENT, **CAPTION_TRAINING}),
        Preset("vit-caption", {**TRANSFORMER, **CAPTION_TRAINING, "learning_rate": 1.5e-3}),
    )
    input_example = "photo.jpg another.png"

    def recognizes(self, data: "DataSettings", modality: str) -> float:
        return 0.1 if modality == "image" else 0.0

    def synthetic(self) -> "SyntheticData":
        return Scenes()

    def claims(self, model: "ModelSettings", *, truncate: bool) -> bool:
        return model.source.kind == "image" and model.decoder.autoregressive

    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        return sequence_pipeline(run)


class Scenes(SyntheticFiles):
    """Drawn scenes of colored shapes, to captions."""

    preset, steps = "show-attend-tell", 550
    counts: ClassVar = {"train": 5_000, "valid": 200, "test": 300}
    next_command = "train captions.jsonl --media pictures -o run"

    def settings(self, preset: dict[str, Any]) -> dict[str, Any]:
        """Few and simple objects: fewer convolutions, and little dropout."""
        model = preset["model"]
        stem = {"stride": 4, "widths": [48, 96]} if model["source"]["stem"]["kind"] == "residual" else {}
        return {
            "model": {
                "source": {"kind": "image", "stem": {**model["source"]["stem"], **stem}},
                "encoder": {"kind": model["encoder"]["kind"], "dropout": 0.1},
                "decoder": {"kind": model["decoder"]["kind"], "dropout": 0.1},
            },
            "data": {
                "subwords": {"kind": "word"},
                "augment": {"rotation": 0.0, "zoom": 0.05, "brightness": 0.05, "shift": 0.03},
            },
            "training": {"batch_tokens": 4096, "learning_rate": 2e-3, "doubly_stochastic": 0.0},
        }

    def write(self, folder: Path, seed: int) -> None:
        from regard.data.synthetic.scenes import scenes

        for split, count in self.counts.items():
            (folder / split).mkdir()
            lines = []
            for number, (scene, picture) in enumerate(scenes(count, split=split, seed=seed)):
                picture.save(folder / split / f"{number}.png")
                record = {"file": f"{split}/{number}.png", "captions": [scene.caption]}
                lines.append(json.dumps(record) + "\n")
            (folder / f"{split}.jsonl").write_text("".join(lines), "utf-8")

    def describe_accuracy(self, count: int) -> str:
        return f"{count:,} pictures of combinations that were held out are described exactly right"
