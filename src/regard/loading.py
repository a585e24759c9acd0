"""Opening a run for inference: its task, the engine that runs it, and why. Imports PyTorch only if it is needed."""

from pathlib import Path
from typing import TYPE_CHECKING

from regard.inference.engines.selection import loaded_run_from_bundle, open_loaded_run
from regard.inference.predictor import Predictor
from regard.runs.folder import open_run
from regard.tasks.base import task_from_description

if TYPE_CHECKING:
    from regard.runs.bundle import Bundle


def load(
    path: Path | str,
    *,
    engine: str = "auto",
    device: str = "auto",
    precision: str = "auto",
    threads: int = 0,
    shortlist: bool = False,
) -> Predictor:
    """The predictor of a run.

    engine: native, ctranslate2, torch, or auto for the fastest that can run this model here. device: cpu, cuda, mps or
    auto. precision: what weights are multiplied in, float32 or int8; auto is int8, but in PyTorch float32. threads: 0
    for one on each core. shortlist: choose tokens only from those that the run's shortlist has for a source; faster,
    and rarely worse.
    """
    folder = open_run(Path(path))
    run = open_loaded_run(
        folder, engine=engine, device=device, precision=precision, threads=threads, shortlist=shortlist
    )
    task = task_from_description(folder.description)
    return Predictor(run, task, task.pipeline(run))


def predictor_from_bundle(bundle: "Bundle") -> Predictor:
    """The predictor of a model that is already loaded in PyTorch."""
    run = loaded_run_from_bundle(bundle)
    task = task_from_description(bundle.description)
    return Predictor(run, task, task.pipeline(run))
