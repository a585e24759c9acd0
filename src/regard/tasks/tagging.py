"""A label for every word of a text."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.special_tokens import EOS
from regard.tasks.base import TASKS, Preset, Task
from regard.tasks.training_defaults import RECURRENT

if TYPE_CHECKING:
    from regard.data.dataset_kinds.base import DatasetKind
    from regard.data.targets.base import Target
    from regard.inference.loaded_run import LoadedRun
    from regard.inference.pipelines.base import Pipeline
    from regard.inference.predictor import Predictor
    from regard.models.settings import ModelSettings


@TASKS.register("tagging")
class Tagging(Task):
    """a label for every word of a text."""

    name, verb, output = "tagging", "tag", "Tags"
    summary = "a label for every word of a text"
    options = frozenset()
    metrics = ("entity_f1", "tag_accuracy", "exact")
    default_presets = {"text": "tagger"}  # noqa: RUF012
    presets = (Preset("tagger", {**RECURRENT, "label_smoothing": 0.0, "metric": "entity_f1", "ema_decay": 0.99}),)

    def data(self) -> "DatasetKind":
        from regard.data.dataset_kinds.tag_pairs import TagPairs

        return TagPairs()

    def describe_target(self, target: "Target") -> str:
        from regard.data.vocabulary import as_vocabulary

        return f"{len(as_vocabulary(target)) - EOS - 1:,} classes"

    def claims(self, model: "ModelSettings", *, truncate: bool) -> bool:
        return model.decoder.predicts == "tags"

    def check(self, model: "ModelSettings") -> None:
        if model.decoder.predicts != "tags":
            raise RegardError("--preset: this model predicts no tags; leave it out.")

    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        from regard.inference.pipelines.tagging import TagDecoder
        from regard.inference.pipelines.token_level import TokenLevelPipeline

        return TokenLevelPipeline(run, TagDecoder(run))

    def verbs(self, predictor: "Predictor") -> Mapping[str, Callable[..., Any]]:
        from regard.inference.pipelines.tagging import tag
        from regard.inference.pipelines.token_level import TokenLevelPipeline

        assert isinstance(predictor.pipeline, TokenLevelPipeline)
        return {**super().verbs(predictor), "tag": partial(tag, predictor.pipeline)}
