"""A task: words in one script to words in another, letter by letter."""

from regard.data.settings import DataSettings
from regard.inference.loaded_run import LoadedRun
from regard.inference.pipelines.base import Pipeline
from regard.tasks.base import TASKS, TEXT_SEARCH, Task, sequence_pipeline


@TASKS.register("transliteration")
class Transliteration(Task):
    """Text to text, tokenized into characters, judged by character error rate."""

    name, verb, output = "transliteration", "transliterate", "Transliteration"
    summary = "words in one script to words in another"
    options = TEXT_SEARCH
    metrics = ("cer", "exact")  # the first one selects checkpoints
    default_presets = {"text": "bahdanau"}  # noqa: RUF012

    def recognizes(self, data: DataSettings, modality: str) -> float:
        """Only where it is asked for: its files look like those of a translation."""
        return 0.0

    def configure(self, settings: dict) -> None:
        """Characters instead of subwords, unless the user says otherwise."""
        settings.setdefault("data", {}).setdefault("subwords", {}).setdefault("kind", "character")

    def pipeline(self, run: LoadedRun) -> Pipeline:
        return sequence_pipeline(run)
