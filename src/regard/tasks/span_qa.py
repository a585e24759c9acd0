"""A passage and a question to the span of the passage that answers it."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.tasks.base import TASKS, Preset, Task
from regard.tasks.training_defaults import TRANSFORMER

if TYPE_CHECKING:
    from regard.data.dataset_kinds.base import DatasetKind
    from regard.data.example import Layout
    from regard.data.settings import DataSettings
    from regard.data.targets.base import Target
    from regard.inference.loaded_run import LoadedRun
    from regard.inference.pipelines.base import Pipeline
    from regard.inference.predictor import Predictor
    from regard.models.settings import ModelSettings


@TASKS.register("span_qa")
class SpanQA(Task):
    """passage and question to the span that answers it."""

    name, verb, output = "span_qa", "answer", "Answer"
    summary = "passage and question to the span that answers it"
    options = frozenset()
    metrics = ("span_f1", "span_exact", "exact")
    loss = "span"
    default_presets = {"text": "span-qa"}  # noqa: RUF012
    presets = (
        Preset(
            "span-qa",
            {**TRANSFORMER, "batch_tokens": 4096, "label_smoothing": 0.0, "metric": "span_f1"},
            {"truncate": True, "max_tokens": 384, "max_characters": 500_000},
        ),
    )
    input_example = "questions.tsv -o answers.tsv"

    def data(self) -> "DatasetKind":
        from regard.data.dataset_kinds.span_pairs import SpanPairs

        return SpanPairs()

    def recognizes(self, data: "DataSettings", modality: str) -> float:
        unnamed = data.source_column is None and data.target_column is None
        return 0.8 if modality == "text" and data.pairs and unnamed and all(map(_is_squad, data.pairs)) else 0.0

    def detect_columns(self, files: tuple[Path, ...]) -> dict[str, Any]:
        from regard.data.task_columns import detect_question_columns

        columns = detect_question_columns(files[0])
        if "question_column" not in columns and not _is_squad(files[0]):
            raise RegardError(
                f"--task span_qa: {files[0]} has no columns for passage, question and answer; call them context, "
                f"question and answer, or name them with --set data.source_column, question_column, target_column."
            )
        return columns

    def table_layout(self, path: Path, layout: "Layout") -> "Layout":
        from regard.data.task_columns import layout_with_question

        return layout_with_question(path, layout)

    def describe_target(self, target: "Target") -> str:
        return "answer spans"

    def claims(self, model: "ModelSettings", *, truncate: bool) -> bool:
        return model.decoder.predicts_spans

    def check(self, model: "ModelSettings") -> None:
        if not model.decoder.predicts_spans:
            raise RegardError("--preset: this model predicts no spans; leave it out.")

    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        from regard.inference.pipelines.span_qa import SpanDecoder
        from regard.inference.pipelines.token_level import TokenLevelPipeline

        return TokenLevelPipeline(run, SpanDecoder(run), example="a\ta")

    def verbs(self, predictor: "Predictor") -> Mapping[str, Callable[..., Any]]:
        from regard.inference.pipelines.span_qa import answer
        from regard.inference.pipelines.token_level import TokenLevelPipeline

        assert isinstance(predictor.pipeline, TokenLevelPipeline)
        return {**super().verbs(predictor), "answer": partial(answer, predictor.pipeline)}


def _is_squad(path: Path) -> bool:
    """Whether a file has passages and questions in the format of SQuAD."""
    return path.name.lower().removesuffix(".gz").endswith(".json")
