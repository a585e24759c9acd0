"""Text embedding: an encoder without a head."""

from typing import TYPE_CHECKING

from regard.errors import RegardError
from regard.tasks.base import TASKS, Task

if TYPE_CHECKING:
    from regard.inference.loaded_run import LoadedRun
    from regard.inference.pipelines.base import Pipeline
    from regard.models.settings import ModelSettings


@TASKS.register("embedding")
class TextEmbedding(Task):
    """encoder alone: texts become vectors."""

    name, verb, output = "embedding", "embed", "Vector"
    summary = "encoder alone: texts become vectors"
    options = frozenset()
    metrics = ()
    served = False

    def claims(self, model: "ModelSettings", *, truncate: bool) -> bool:
        return model.decoder.kind == "none"

    def check(self, model: "ModelSettings") -> None:
        raise RegardError("--task: an encoder without a head has nothing to learn by; choose another task.")

    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        from regard.inference.pipelines.text_embedding import EmbeddingPipeline

        return EmbeddingPipeline(run)
