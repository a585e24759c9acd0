"""Masked language modeling: BERT."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.tasks.base import TASKS, Task

if TYPE_CHECKING:
    from regard.data.kinds.base import DatasetKind
    from regard.inference.loaded_run import LoadedRun
    from regard.inference.pipeline import Pipeline
    from regard.inference.predictor import Predictor
    from regard.models.settings import ModelSettings


@TASKS.register("masked_lm")
class MaskedLM(Task):
    """masked language model: fills gaps, embeds texts."""

    name, verb, output = "masked_lm", "fill", "Text"
    summary = "masked language model: fills gaps, embeds texts"
    options = frozenset({"nbest"})
    metrics = ("loss",)
    evaluator = "masked-perplexity"
    served = False
    presets = {"nothing": "bert-tiny"}  # noqa: RUF012
    test_file = "test.txt"

    def data(self) -> "DatasetKind":
        from regard.data.kinds.documents import MaskedDocuments

        return MaskedDocuments()

    def check(self, model: "ModelSettings") -> None:
        if not model.guesses:
            raise RegardError("--preset: this model predicts no masked tokens; leave it out.")

    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        from regard.inference.fill_mask import FillMaskPipeline

        return FillMaskPipeline(run)

    def verbs(self, predictor: "Predictor") -> Mapping[str, Callable[..., Any]]:
        from regard.inference.fill_mask import FillMaskPipeline

        assert isinstance(predictor.pipeline, FillMaskPipeline)
        return {**super().verbs(predictor), "fill": predictor.pipeline.fill}
