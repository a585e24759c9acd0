"""Long text to short text."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.tasks.base import TASKS, TEXT_SEARCH, Preset, Task, sequence_pipeline
from regard.tasks.synthetic_data import SyntheticData
from regard.tasks.training_defaults import RECURRENT

if TYPE_CHECKING:
    from regard.inference.loaded_run import LoadedRun
    from regard.inference.pipelines.base import Pipeline
    from regard.models.settings import ModelSettings


@TASKS.register("summarization")
class Summarization(Task):
    """long text to short text, copying names as they are."""

    name, verb, output = "summarization", "summarize", "Summary"
    summary = "long text to short text, copying names as they are"
    options = TEXT_SEARCH
    metrics = ("rougeL", "rouge1", "rouge2", "exact")
    default_presets = {"text": "pointer-generator"}  # noqa: RUF012
    presets = (Preset("pointer-generator", {**RECURRENT, "metric": "rougeL", "ema_decay": 0.999}, {"truncate": True}),)

    def synthetic(self) -> "SyntheticData":
        return Notices()

    def claims(self, model: "ModelSettings", *, truncate: bool) -> bool:
        reads_one_text = model.source.is_text and model.source.segments_of_text == 1
        return truncate and reads_one_text and model.decoder.autoregressive

    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        return sequence_pipeline(run)


class Notices(SyntheticData):
    """Notices, each with a summary of one line; their names occur in no other notice."""

    preset, steps = "pointer-generator", 400
    counts: ClassVar = {"train": 8_000, "valid": 200, "test": 400}
    next_command = "train texts.tsv --task summarization -o run"

    def settings(self, preset: dict[str, Any]) -> dict[str, Any]:
        return {"data": {"subwords": {"size": 600}}, "training": {"batch_tokens": 4096, "learning_rate": 3e-3}}

    def write(self, folder: Path, seed: int) -> None:
        from regard.data.synthetic.notices import notices

        for split, count in self.counts.items():
            lines = [f"{text}\t{summary}\n" for text, summary in notices(count, split=split, seed=seed)]
            (folder / f"{split}.tsv").write_text("".join(lines), "utf-8")

    def describe_accuracy(self, count: int) -> str:
        return f"{count:,} notices that were held out are put into one line exactly right"
