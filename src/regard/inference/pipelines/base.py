"""The contract between a predictor and its pipeline: inputs in, results out, attention on request."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from regard.inference.inputs.base import Inputs
from regard.inference.loaded_run import LoadedRun
from regard.inference.options import Options
from regard.inference.results import Result
from regard.views.notebook import AttentionView

OnDone = Callable[[int], None]  # called with how many more inputs are finished


def ignore_progress(count: int) -> None:
    """Does nothing."""


class Pipeline(Protocol):
    """How one kind of model predicts."""

    run: LoadedRun

    def check(self, inputs: Sequence[Any]) -> None:
        """Raise RegardError for an input of another type."""
        ...

    def results(self, inputs: Sequence[Any], options: Options, on_done: OnDone = ignore_progress) -> list[Result]:
        """A result for each input, in order."""
        ...

    def attend(
        self, source: Any, target: str | Result | None = None, *, attribution: bool = False, to: str = ""
    ) -> AttentionView:
        """What the model attends to over a source and a target: a given one, a result, or its own prediction."""
        ...

    @property
    def example(self) -> Any:
        """An input to warm up with."""
        ...


class FileReport(NamedTuple):
    """lines: to print, the predictions if they were not written. notes: what was changed or assumed in reading."""

    lines: list[str]
    notes: list[str]


@runtime_checkable
class FilePipeline(Pipeline, Protocol):
    """A pipeline whose predictions for a file are a file."""

    def write_file(
        self, path: Path, output: Path | None, options: Options | None = None, *, as_json: bool = False
    ) -> FileReport:
        """Write the predictions for a file, or return them as lines if there is no output."""
        ...


@runtime_checkable
class TablePipeline(FilePipeline, Protocol):
    """A pipeline whose inputs are whole tables. step: the time between their rows, in words."""

    @property
    def step(self) -> str: ...

    def read_columns(self, columns: Mapping[str, Any]) -> Any:
        """An input from columns by name. Raises RegardError."""
        ...


@runtime_checkable
class UploadReader(Protocol):
    """What reads uploaded files: a pipeline, or its inputs. upload_suffixes: of the files, in lower case."""

    @property
    def upload_suffixes(self) -> tuple[str, ...]: ...

    def read_upload(self, content: bytes, name: str) -> Any:
        """An input of the pipeline, from the content of a file. Raises RegardError."""
        ...

    def wav_bytes(self, content: bytes) -> bytes:
        """A recording as a WAV file, to be played; empty for other files."""
        ...

    def upload_length(self, item: Any) -> int:
        """Positions of an upload, which gradients are computed for."""
        ...


@runtime_checkable
class PipelineWithInputs(Pipeline, Protocol):
    """A pipeline that encodes inputs of one kind for a search."""

    inputs: Inputs
