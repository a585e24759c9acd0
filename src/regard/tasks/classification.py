"""Text, images, recordings or numeric series to a class."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.special_tokens import EOS
from regard.tasks.base import TASKS, Preset, Task, sequence_pipeline
from regard.tasks.training_defaults import RECURRENT

if TYPE_CHECKING:
    from regard.data.dataset_kinds.base import DatasetKind
    from regard.data.settings import DataSettings
    from regard.data.targets.base import Target
    from regard.inference.loaded_run import LoadedRun
    from regard.inference.pipelines.base import Pipeline
    from regard.models.settings import ModelSettings


@TASKS.register("classification")
class Classification(Task):
    """text, image, recording or numeric series to a class."""

    name, verb, output = "classification", "classify", "Class"
    summary = "text, image, recording or numeric series to a class"
    options = frozenset({"nbest", "scores", "attention"})
    metrics = ("exact", "macro_f1")
    default_presets = {  # noqa: RUF012
        "text": "classifier",
        "image": "image-classifier",
        "audio": "speech-classifier",
        "series": "series-classifier",
    }
    presets = tuple(
        Preset(name, {**RECURRENT, "label_smoothing": 0.05, "metric": "exact", "ema_decay": 0.99}, {"truncate": True})
        for name in (
            *("classifier", "classifier-conv", "classifier-transformer"),
            *("image-classifier", "speech-classifier", "series-classifier"),
        )
    )

    def data(self) -> "DatasetKind":
        from regard.data.dataset_kinds.label_pairs import LabelPairs

        return LabelPairs()

    def recognizes(self, data: "DataSettings", modality: str) -> float:
        from regard.data.task_columns import has_class_column

        arrays = any("idx3-ubyte" in path.name for path in data.source)
        tables = data.pairs and data.target_column is None and all(map(has_class_column, data.pairs))
        return 0.9 if arrays or tables else 0.0

    def detect_columns(self, files: tuple[Path, ...]) -> dict[str, Any]:
        from regard.data.task_columns import detect_class_columns

        return detect_class_columns(files[0])

    def configure(self, settings: dict[str, Any]) -> None:
        """Two texts, one class: the source has two segments. The columns and steps of series are those of the files."""
        if settings.get("data", {}).get("question_column") is not None:
            source = settings["model"].setdefault("source", {"kind": "text"})
            source["segments"] = max(2, source.get("segments", 1))

        source = settings["model"].get("source", {})
        if source.get("kind") == "series":
            from regard.data.series.shape import read_example_shape

            shape = read_example_shape(settings.get("data", {}))
            if shape is not None:
                source["columns"] = shape.columns
                source.setdefault("history", shape.longest)

    def claims(self, model: "ModelSettings", *, truncate: bool) -> bool:
        return model.decoder.predicts == "classes"

    def check(self, model: "ModelSettings") -> None:
        if model.decoder.predicts != "classes":
            raise RegardError("--preset: this model predicts no class; leave it out, or choose a classifier.")

    def describe_target(self, target: "Target") -> str:
        from regard.data.vocabulary import as_vocabulary

        return f"{len(as_vocabulary(target)) - EOS - 1:,} classes"

    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        return sequence_pipeline(run)
