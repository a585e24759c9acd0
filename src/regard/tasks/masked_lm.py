"""Masked language modeling: BERT."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.tasks.base import TASKS, Preset, Task
from regard.tasks.training_defaults import transformer

if TYPE_CHECKING:
    from regard.data.dataset_kinds.base import DatasetKind
    from regard.inference.loaded_run import LoadedRun
    from regard.inference.pipelines.base import Pipeline
    from regard.inference.predictor import Predictor
    from regard.models.settings import ModelSettings


@TASKS.register("masked_lm")
class MaskedLM(Task):
    """masked language model: fills masks, embeds texts."""

    name, verb, output = "masked_lm", "fill", "Text"
    summary = "masked language model: fills masks, embeds texts"
    options = frozenset({"nbest"})
    metrics = ("loss",)
    metric_inputs = frozenset({"loss"})
    evaluator = "masked-perplexity"
    served = False
    default_presets = {"none": "bert-tiny"}  # noqa: RUF012
    presets = tuple(
        Preset(
            name,
            transformer(width, batch_tokens=4096, warmup_steps=300, label_smoothing=0.0, metric="loss"),
            {"max_tokens": 128},
        )
        for name, width in {"bert-tiny": 128, "bert-small": 256, "bert": 768}.items()
    )
    test_file = "test.txt"
    input_example = '"A dog ___ in the park."'

    def data(self) -> "DatasetKind":
        from regard.data.dataset_kinds.documents import MaskedDocuments

        return MaskedDocuments()

    def claims(self, model: "ModelSettings", *, truncate: bool) -> bool:
        return model.decoder.masked_lm

    def check(self, model: "ModelSettings") -> None:
        if not model.decoder.masked_lm:
            raise RegardError("--preset: this model predicts no masked tokens; leave it out.")

    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        from regard.inference.pipelines.fill_mask import FillMaskPipeline

        return FillMaskPipeline(run)

    def verbs(self, predictor: "Predictor") -> Mapping[str, Callable[..., Any]]:
        from regard.inference.pipelines.fill_mask import FillMaskPipeline

        assert isinstance(predictor.pipeline, FillMaskPipeline)
        return {**super().verbs(predictor), "fill": predictor.pipeline.fill}
