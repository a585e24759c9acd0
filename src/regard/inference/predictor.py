"""What `regard.load` returns: a run with its task, ready to predict."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from regard.data.example import Layout
from regard.data.media.base import MediaProcessor
from regard.errors import RegardError
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.pipelines.base import OnDone, Pipeline, ignore_progress
from regard.inference.results import Result
from regard.runs.folder import RunDescription
from regard.views.notebook import AttentionView

STREAM_BATCH = 4096  # inputs of a stream that are read ahead and sorted into batches together


class TaskProtocol(Protocol):
    """What a predictor needs of its task."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> frozenset[str]: ...

    @property
    def verb(self) -> str: ...

    @property
    def served(self) -> bool: ...

    @property
    def loss(self) -> str: ...

    @property
    def evaluator(self) -> str: ...

    @property
    def metrics(self) -> tuple[str, ...]: ...

    @property
    def output(self) -> str: ...

    @property
    def title(self) -> str: ...

    def table_layout(self, path: Path, layout: Layout) -> Layout:
        """Where the inputs are in a table of a user."""
        ...

    def default_options(self, options: Options) -> Options:
        """Decoding options with the task's own defaults."""
        ...

    def verbs(self, predictor: Any) -> Mapping[str, Callable[..., Any]]:
        """The methods that a predictor of this task has besides `predict`, by name."""
        ...


class Predictor:
    """A run, its task and a pipeline. The task's verb (`translate`, `classify`, `tag`, ...) is a method, too."""

    def __init__(self, run: LoadedRun, task: TaskProtocol, pipeline: Pipeline) -> None:
        self.run, self.task, self.pipeline = run, task, pipeline

    @property
    def description(self) -> RunDescription:
        """What is in the run's model.toml."""
        return self.run.description

    @property
    def task_metrics(self) -> tuple[str, ...]:
        """The metrics that are reported for its task."""
        return self.task.metrics

    @property
    def engine_reason(self) -> str:
        """Which engine runs it, and why, as a sentence."""
        return self.run.engine_reason

    @property
    def reads_files(self) -> bool:
        """Whether inputs are files, such as images or recordings, rather than texts."""
        return isinstance(self.run.source_processor, MediaProcessor)

    def predict(self, inputs: Any, options: Options | None = None, **more: Any) -> Any:
        """One input -> its result; a list -> a list; an iterator -> results one by one, in order, however many.

        Options by name, such as `beam=1` or `nbest=3`, or as one value.
        """
        chosen = Options.from_dict(more) if options is None else options.with_changes(**more)
        if isinstance(inputs, io.RawIOBase | io.BufferedIOBase):
            inputs = inputs.read()
        if isinstance(inputs, Iterator):
            return self._predict_stream(inputs, chosen)
        texts = isinstance(inputs, tuple) and all(isinstance(each, str) for each in inputs)
        if texts or (isinstance(inputs, Sequence) and not isinstance(inputs, str | bytes | tuple)):
            return self.results(inputs, chosen)
        return self.results([inputs], chosen)[0]

    def _predict_stream(self, inputs: Iterator[Any], options: Options) -> Iterator[Result]:
        while batch := list(islice(inputs, STREAM_BATCH)):
            yield from self.results(batch, options)

    def results(
        self, inputs: Iterable[Any], options: Options | None = None, *, on_done: OnDone = ignore_progress
    ) -> list[Result]:
        """A result for each input, in order. on_done: called with how many more are finished."""
        options = self.resolve_options(options or Options())
        return self.pipeline.results(list(inputs), options, on_done)

    def resolve_options(self, options: Options) -> Options:
        """The options with the task's defaults.

        Raises RegardError if one was set that does not apply to this run, or is impossible for it.
        """
        options.check_groups(self.task.options, f"a run for {self.task.title}")
        if options.alignment and not self.description.model.aligns:
            raise RegardError("alignment: the source of this model is not words; attention shows what it attends to.")
        resolved = self.task.default_options(options)
        self.run.search_config(resolved)
        return resolved

    def attend(
        self, source: Any, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> AttentionView:
        """What the model attends to over a source and a target: a given one, a result, or its own prediction.

        attribution: with gradient times input. to: the language, of a model of several. Raises RegardError.
        """
        return self.pipeline.attend(source, target, attribution=attribution, to=to)

    def greedy_options(self) -> Options:
        """The fastest options that apply to this run."""
        return Options(beam=1) if "search" in self.task.options else Options()

    @cached_property
    def _verbs(self) -> Mapping[str, Callable[..., Any]]:
        return {"predict": self.predict, **self.task.verbs(self)}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("run", "task", "pipeline"):
            raise AttributeError(name)
        if name in self._verbs:
            return self._verbs[name]
        known = ", ".join(sorted(self._verbs))
        raise AttributeError(f"a run for {self.task.title} has no {name!r}; it has {known}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._verbs]
