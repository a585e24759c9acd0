"""The models of a service: loaded in the background, selected by name or by languages."""

import asyncio
import gc
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.inference.options import options_in
from regard.inference.pipelines.base import TablePipeline, UploadReader
from regard.inference.predictor import Predictor, TaskProtocol
from regard.serving.batcher import Batcher
from regard.serving.http_requests import RequestError
from regard.serving.limits import Limits

LOGGER = logging.getLogger(__name__)


@dataclass
class Model:
    """One served run. Until it is loaded, only `name` and `folder` are set."""

    name: str
    folder: Path
    source: str | None = None  # languages
    target: str | None = None
    engine: str = ""
    predictor: Predictor | None = None
    batcher: Batcher | None = None

    @property
    def metadata(self) -> dict[str, Any]:
        """Task, output, options and input modality, as in the response of /v1/models; empty until it is loaded."""
        if self.predictor is None:
            return {}
        model, task = self.predictor.description.model, self.predictor.task
        return {
            "task": task.name,
            "output": task.output,
            "options": options_in(task.options),
            "modality": model.source.kind,
            "path": predict_path(self.predictor),
            "accepts": accepted_suffixes(self.predictor),
            "aligns": model.aligns,
            "languages": list(self.predictor.description.target_languages),
        }

    @property
    def targets(self) -> list[str]:
        """The languages that the model translates to."""
        several = () if self.predictor is None else self.predictor.description.target_languages
        return list(several) or ([self.target] if self.target else [])

    @property
    def sources(self) -> list[str]:
        """The languages that the model translates from."""
        return [self.source] if self.source else []

    def target_language(self, requested: str | None) -> str:
        """The one of several target languages that a request means; empty for a model of one, or if none is meant."""
        if requested is None or len(self.targets) < 2:
            return ""
        return next((each for each in self.targets if _language_matches(requested, each)), "")

    def matches_languages(self, source: str | None, target: str | None) -> bool:
        """Whether the model translates from this language to that one; None matches any language."""
        predictor = self.predictor
        if target is not None and predictor is not None and not predictor.description.model.decoder.predicts_tokens:
            return False  # labels are in no language
        matches_target = not self.targets or any(_language_matches(target, each) for each in self.targets)
        return _language_matches(source, self.source) and matches_target


def _language_matches(requested: str | None, supported: str | None) -> bool:
    """Whether two codes match: "pt" and "pt-BR" do, and a model without a language matches any language."""
    if requested is None or supported is None:
        return True
    a, b = requested.lower().replace("_", "-"), supported.lower().replace("_", "-")
    return a == b or a.startswith(f"{b}-") or b.startswith(f"{a}-")


def check_served(folder: Path, task: TaskProtocol) -> None:
    """Raise RegardError for a run of a task that cannot be served."""
    if not task.served:
        raise RegardError(f"{folder}: a run for {task.title} is not served yet; use regard {task.verb}.")


def predict_path(predictor: Predictor) -> str:
    """Where predictions of a run are requested."""
    if isinstance(predictor.pipeline, TablePipeline):
        return "/v1/forecast"
    return "/v1/predict-file" if predictor.reads_files else "/v1/translate"


def accepted_suffixes(predictor: Predictor) -> list[str]:
    """The suffixes of files that can be uploaded; none for a run that reads text."""
    reader = upload_reader(predictor)
    return [] if reader is None else list(reader.upload_suffixes)


def upload_reader(predictor: Predictor) -> UploadReader | None:
    """What reads uploads for a predictor; None if it reads text."""
    for each in (predictor.pipeline, getattr(predictor.pipeline, "inputs", None)):
        if isinstance(each, UploadReader):
            return each
    return None


class ModelNotFoundError(RegardError):
    """No model matches the requested name or languages."""


class ModelPool:
    """All models of a service."""

    def __init__(
        self,
        folders: list[Path],
        limits: Limits,
        *,
        engine: str = "auto",
        precision: str = "auto",
        shortlist: bool = False,
    ) -> None:
        self.limits = limits
        self._load_options: dict[str, Any] = {"engine": engine, "precision": precision, "shortlist": shortlist}
        self.models: list[Model] = []
        self.load_error: str = ""  # why a model could not be loaded
        self.ready = False
        for folder in folders:
            name = folder.resolve().name
            while any(model.name == name for model in self.models):
                name += "-2"
            self.models.append(Model(name, folder))

    async def load(self) -> None:
        """Load all models one by one in a thread, and start a batcher for each. Sets `ready` or `load_error`."""
        try:
            for model in self.models:
                predictor = await asyncio.to_thread(self._open, model.folder)
                description = predictor.description
                model.source, model.target = description.source_language, description.target_language
                model.engine, model.predictor = predictor.engine_reason, predictor
                model.batcher = Batcher(predictor, max_queued_characters=self.limits.queued_characters)
                model.batcher.start()
        except (RegardError, OSError) as error:
            self.load_error = str(error)
            return
        except Exception as error:
            LOGGER.exception("a model could not be loaded")
            self.load_error = f"this is a bug in regard ({type(error).__name__}: {error})."
            return
        gc.collect()
        gc.freeze()  # loaded models are never freed: the collector need not traverse them again and again
        self.ready = True

    def _open(self, folder: Path) -> Predictor:
        from regard.loading import load

        predictor = load(folder, **self._load_options)
        check_served(folder, predictor.task)
        # The first prediction is slow, and imports PyTorch.
        options = predictor.greedy_options()
        accepted = predictor.task.options
        aligns = predictor.description.model.aligns
        extra_outputs = {
            name: True for name in ("scores", "alignment") if name in accepted and (aligns or name == "scores")
        }
        predictor.results([predictor.pipeline.example], options.with_changes(**extra_outputs))
        return predictor

    async def stop(self) -> None:
        """Stop all batchers."""
        for model in self.models:
            if model.batcher is not None:
                await model.batcher.stop()

    def find(self, *, name: str | None = None, source: str | None = None, target: str | None = None) -> Model:
        """The model with this name, or the first that matches the languages. Raises ModelNotFoundError."""
        if name is not None:
            matches = [model for model in self.models if model.name == name]
            if not matches:
                raise ModelNotFoundError(
                    f"there is no model {name[:80]!r}; there are {', '.join(m.name for m in self.models)}."
                )
            return matches[0]
        source = None if source in (None, "", "auto") else source
        matches = [model for model in self.models if model.matches_languages(source, target or None)]
        # A model without languages is meant only where no other model has one on that side.
        for side, requested in (("source", source), ("target", target)):
            if requested and any(getattr(model, f"{side}s") for model in self.models):
                matches = [model for model in matches if getattr(model, f"{side}s")]
        if not matches:
            raise ModelNotFoundError(
                f"no model translates from {source or 'any language'} to {target or 'any'}; see the list of languages."
            )
        exact = [model for model in matches if model.targets or target is None] or matches
        if source is None and len({model.source for model in exact}) > 1:
            raise ModelNotFoundError("several models could be meant; name the model, or the source language.")
        return exact[0]


def find_model(
    pool: ModelPool, name: str | None, is_suitable: Callable[[Model], bool], *, missing: str, several: str
) -> Model:
    """The model with this name, or the only suitable one. Raises RequestError.

    missing, several: the message if there is none, or more than one.
    """
    try:
        candidates = [pool.find(name=name)] if name is not None else pool.models
    except ModelNotFoundError as error:
        raise RequestError(400, str(error)) from None
    if any(model.predictor is None for model in candidates):
        raise RequestError(503, "the models are being loaded.", {"Retry-After": "2"})
    suitable = [model for model in candidates if is_suitable(model)]
    if not suitable:
        raise RequestError(400, missing)
    if len(suitable) > 1:
        raise RequestError(400, f"{several}; name one of {', '.join(model.name for model in suitable)}.")
    return suitable[0]
