"""The models of a service: loaded in the background, found by name or by languages."""

import asyncio
import gc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.inference.options import options_in
from regard.inference.predictor import Predictor
from regard.serving.batching import Batcher
from regard.serving.limits import Limits


@dataclass
class Model:
    """One run. Until it is loaded it has a name only."""

    name: str
    folder: Path
    source: str | None = None  # languages
    target: str | None = None
    engine: str = ""
    predictor: Predictor | None = None
    batcher: Batcher | None = None

    @property
    def about(self) -> dict[str, Any]:
        """What it reads and says."""
        if self.predictor is None:
            return {}
        model, task = self.predictor.description.model, self.predictor.task
        return {
            "task": task.name,
            "output": task.output,
            "options": options_in(task.options),
            "reads": model.source.kind,
            "aligns": model.aligns,
            "languages": list(self.predictor.description.target_languages),
        }

    def serves(self, source: str | None, target: str | None) -> bool:
        """Whether it goes from this language to that; None is any."""
        return _matches(source, self.source) and _matches(target, self.target)


def _matches(wanted: str | None, own: str | None) -> bool:
    """Of "pt-BR", "pt" is enough, and the other way round; a model that does not say matches anything."""
    if wanted is None or own is None:
        return True
    a, b = wanted.lower().replace("_", "-"), own.lower().replace("_", "-")
    return a == b or a.startswith(f"{b}-") or b.startswith(f"{a}-")


class Unknown(RegardError):  # noqa: N818
    """No model does what was asked for."""


class Models:
    """All of them."""

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
        self._how: dict[str, Any] = {"engine": engine, "precision": precision, "shortlist": shortlist}
        self.all: list[Model] = []
        self.wrong: str = ""  # why they could not be loaded
        self.ready = False
        for folder in folders:
            name = folder.resolve().name
            while any(model.name == name for model in self.all):
                name += "-2"
            self.all.append(Model(name, folder))

    async def load(self) -> None:
        """Open all models, one after the other, without stopping the loop; then begin to work."""
        try:
            for model in self.all:
                predictor = await asyncio.to_thread(self._opened, model.folder)
                about = predictor.description
                model.source, model.target = about.source_language, about.target_language
                model.engine, model.predictor = predictor.engine_reason, predictor
                model.batcher = Batcher(predictor, most_waiting=self.limits.waiting)
                model.batcher.start()
        except (RegardError, OSError) as error:
            self.wrong = str(error)
            return
        gc.collect()
        gc.freeze()  # what is loaded stays: the collector need not look at all of it again and again
        self.ready = True

    def _opened(self, folder: Path) -> Predictor:
        from regard.loading import load

        predictor = load(folder, **self._how)
        if not predictor.task.served:
            raise RegardError(
                f"{folder}: a run for {predictor.task.title} is not served yet; use regard {predictor.task.verb}."
            )
        # The first prediction is slow, and imports PyTorch.
        options = predictor.greedy()
        accepted = predictor.task.options
        aligns = predictor.description.model.aligns
        more = {name: True for name in ("scores", "alignment") if name in accepted and (aligns or name == "scores")}
        predictor.results([predictor.pipeline.example], options.with_(**more))
        return predictor

    async def stop(self) -> None:
        """Stop working."""
        for model in self.all:
            if model.batcher is not None:
                await model.batcher.stop()

    def find(self, *, name: str | None = None, source: str | None = None, target: str | None = None) -> Model:
        """The one that is meant. Raises Unknown, in one sentence."""
        if name is not None:
            found = [model for model in self.all if model.name == name]
            if not found:
                raise Unknown(f"there is no model {name[:80]!r}; there are {', '.join(m.name for m in self.all)}.")
            return found[0]
        source = None if source in (None, "", "auto") else source
        found = [model for model in self.all if model.serves(source, target or None)]
        if not found:
            raise Unknown(
                f"no model goes from {source or 'any language'} to {target or 'any'}; see the list of languages."
            )
        exact = [model for model in found if model.target is not None or target is None] or found
        if source is None and len({model.source for model in exact}) > 1:
            raise Unknown("several models could be meant; name the source language.")
        return exact[0]
