"""A small dataset, model and run."""

from pathlib import Path
from typing import Any

import torch

from regard.data.corpus import Corpus, prepare
from regard.runs.bundle import Bundle
from regard.settings import merge_settings
from regard.tasks.base import get_task
from regard.training.run import new_bundle
from regard.training.settings import RunSettings, run_settings
from tests.end_to_end.commands import write_dates

TINY: dict[str, Any] = {
    "model": {side: {"width": 16, "layers": 1, "dropout": 0.1} for side in ("encoder", "decoder")},
    "data": {"subwords": {"kind": "character", "coverage": 1.0}},
    "training": {
        "batch_tokens": 256,
        "steps": 6,
        "validate_every": 3,
        "metric": "exact",
        "save_every": 1,
        "averaged_checkpoints": 2,
    },
}


def small_run(folder: Path, preset: str = "bahdanau", **training: Any) -> tuple[RunSettings, Corpus, Bundle]:
    """Settings, a dataset of dates and a new model."""
    data = write_dates(folder / "dates.tsv", 120)
    options = merge_settings(TINY, {"data": {"pairs": [str(data)]}, "training": training})
    settings = run_settings(preset, {}, [], options)
    corpus = prepare(settings.data, folder / "data", kind=get_task(settings.task).data(), source=settings.model.source)
    return settings, corpus, new_bundle(settings, corpus, torch.device("cpu"))
