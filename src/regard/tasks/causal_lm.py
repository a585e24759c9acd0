"""Causal language modeling: GPT."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.tasks.base import TASKS, Preset, Task, sequence_pipeline
from regard.tasks.training_defaults import transformer

if TYPE_CHECKING:
    from regard.data.dataset_kinds.base import DatasetKind
    from regard.data.settings import DataSettings
    from regard.inference.loaded_run import LoadedRun
    from regard.inference.options import Options
    from regard.inference.pipelines.base import Pipeline
    from regard.inference.predictor import Predictor
    from regard.inference.results import Result
    from regard.models.settings import ModelSettings


@TASKS.register("causal_lm")
class CausalLM(Task):
    """language model: continues a prompt."""

    name, verb, output = "causal_lm", "generate", "Text"
    summary = "language model: continues a prompt"
    options = frozenset({"search", "nbest", "sampling", "forbidden", "length", "scores"})
    metrics = ("loss",)
    metric_inputs = frozenset({"loss"})
    evaluator = "perplexity"
    served = False
    default_presets = {"none": "gpt-tiny"}  # noqa: RUF012
    presets = tuple(
        Preset(name, transformer(width, warmup_steps=300, label_smoothing=0.0, metric="loss"))
        for name, width in {"gpt-tiny": 128, "gpt-small": 256, "gpt2": 768}.items()
    )
    test_file = "test.txt"
    input_example = '"Once upon a time"'

    def data(self) -> "DatasetKind":
        from regard.data.dataset_kinds.documents import CausalDocuments

        return CausalDocuments()

    def recognizes(self, data: "DataSettings", modality: str) -> float:
        return 0.1 if modality == "none" else 0.0

    def claims(self, model: "ModelSettings", *, truncate: bool) -> bool:
        return model.source.is_empty and model.decoder.autoregressive

    def check(self, model: "ModelSettings") -> None:
        if not model.source.is_empty:
            raise RegardError("--preset: this model has a source, and a causal language model has none; leave it out.")

    def default_options(self, options: "Options") -> "Options":
        """It samples, unless a search is chosen."""
        chosen = options.samples or options.model_fields_set & {"search", "beam", "beam_groups"}
        return options if chosen else options.with_changes(temperature=1.0)

    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        return sequence_pipeline(run)

    def verbs(self, predictor: "Predictor") -> Mapping[str, Callable[..., Any]]:
        from regard.inference.options import Options
        from regard.inference.pipelines.sequence import SequencePipeline

        assert isinstance(predictor.pipeline, SequencePipeline)
        pipeline = predictor.pipeline

        def stream(
            prompt: str, on_text: Callable[[str], None], options: "Options | None" = None, **more: Any
        ) -> "Result":
            """One text, reported incrementally as it is generated, the prompt first."""
            chosen = Options.from_dict(more) if options is None else options.with_changes(**more)
            return pipeline.stream(prompt, on_text, predictor.resolve_options(chosen))

        return {**super().verbs(predictor), "stream": stream, "streams": pipeline.streams}
