"""A story and a question to an answer that is generated."""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.tasks.base import TASKS, TEXT_SEARCH, Preset, Task, sequence_pipeline
from regard.tasks.synthetic_data import SyntheticData
from regard.tasks.training_defaults import TRANSFORMER

if TYPE_CHECKING:
    from regard.data.settings import DataSettings
    from regard.inference.loaded_run import LoadedRun
    from regard.inference.pipelines.base import Pipeline
    from regard.inference.predictor import Predictor
    from regard.models.settings import ModelSettings


# Answers that are examined; how many are needed at least; the share of them that may be distinct.
MAX_EXAMPLES, MIN_EXAMPLES, MAX_DISTINCT = 5000, 200, 0.1


@TASKS.register("story_qa")
class StoryQA(Task):
    """story and question to a generated answer."""

    name, verb, output = "story_qa", "answer", "Answer"
    summary = "story and question to a generated answer"
    options = TEXT_SEARCH
    metrics = ("exact", "rouge1", "rouge2", "rougeL")
    default_presets = {"text": "story-qa"}  # noqa: RUF012
    presets = (
        Preset(
            "story-qa",
            {**TRANSFORMER, "learning_rate": 1.5e-3, "metric": "exact", "label_smoothing": 0.0},
            {"truncate": True, "subwords": {"kind": "word"}},
        ),
        Preset(
            "memory-network",
            {
                **TRANSFORMER,
                "learning_rate": 1e-3,
                "batch_tokens": 4096,
                "metric": "exact",
                "label_smoothing": 0.0,
                "max_grad_norm": 1.0,
            },
            {"truncate": True, "max_tokens": 512, "subwords": {"kind": "word"}},
        ),
    )
    input_example = "questions.tsv -o answers.tsv"

    def recognizes(self, data: "DataSettings", modality: str) -> float:
        from regard.data.task_columns import has_question_columns

        unnamed = data.source_column is None and data.target_column is None
        return (
            0.7 if modality == "text" and data.pairs and unnamed and all(map(has_question_columns, data.pairs)) else 0.0
        )

    def detect_columns(self, files: tuple[Path, ...]) -> dict[str, Any]:
        from regard.data.task_columns import detect_question_columns

        return detect_question_columns(files[0])

    def preset(self, data: "DataSettings", modality: str) -> str:
        """With few distinct answers, as in synthetic stories, no copy mechanism is needed, and attention over sentences
        is better than over words; otherwise answers are copied from the story."""
        default = super().preset(data, modality)
        if not data.pairs:
            return default
        from regard.data.input_validation import read_examples

        answers = Counter(each.target.strip().lower() for each in islice(read_examples(data), MAX_EXAMPLES))
        has_few_answers = answers.total() >= MIN_EXAMPLES and len(answers) <= MAX_DISTINCT * answers.total()
        return "memory-network" if has_few_answers else default

    def synthetic(self) -> "SyntheticData":
        return Stories()

    def claims(self, model: "ModelSettings", *, truncate: bool) -> bool:
        return model.source.segments_of_text > 1 and model.decoder.autoregressive

    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        return sequence_pipeline(run)

    def verbs(self, predictor: "Predictor") -> Mapping[str, Callable[..., Any]]:
        def answer(story: Any, question: str | None = None, /, **options: Any) -> Any:
            """The answer to a question about a story, or to a list of stories with questions, a tab between them."""
            return predictor.predict(story if question is None else f"{story}\t{question}", **options)

        return {**super().verbs(predictor), "answer": answer}


class Stories(SyntheticData):
    """Stories and questions, to answers."""

    preset, steps = "story-qa", 1400
    counts: ClassVar = {"train": 12_000, "valid": 300, "test": 500}
    next_command = "train questions.tsv --task story_qa -o run"

    def settings(self, preset: dict[str, Any]) -> dict[str, Any]:
        return {
            "model": {"source": {"kind": "text", "segments": 2}},
            "data": {"subwords": {"kind": "word"}, "source_column": 1, "question_column": 2, "target_column": 3},
            "training": {"batch_tokens": 2048, "learning_rate": 1.5e-3},
        }

    def write(self, folder: Path, seed: int) -> None:
        from regard.data.synthetic.stories import stories

        for split, count in self.counts.items():
            lines = ["\t".join(each) + "\n" for each in stories(count, split=split, seed=seed)]
            (folder / f"{split}.tsv").write_text("".join(lines), "utf-8")

    def describe_accuracy(self, count: int) -> str:
        return f"{count:,} questions about stories that were held out are answered right"
