"""The base class of tasks: one object in one file, which training, inference, evaluation, serving and views use.

Importing a task imports no PyTorch; what needs it is imported by the methods.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from regard.errors import RegardError
from regard.models.shapes import SHAPES
from regard.registry import Registry
from regard.renames import VALUES

if TYPE_CHECKING:
    from regard.data.dataset_kinds.base import DatasetKind
    from regard.data.example import Layout
    from regard.data.settings import DataSettings
    from regard.data.targets.base import Target
    from regard.inference.inputs.base import Inputs
    from regard.inference.loaded_run import LoadedRun
    from regard.inference.options import Options
    from regard.inference.pipelines.base import Pipeline
    from regard.inference.predictor import Predictor
    from regard.models.settings import ModelSettings
    from regard.runs.folder import RunDescription
    from regard.tasks.synthetic_data import SyntheticData

# Groups of decoding options.
SEARCH = frozenset({"search", "nbest", "sampling", "prefix", "forbidden", "language", "scores", "attention"})
TEXT_SEARCH = SEARCH | {"glossary", "alignment"}


@dataclass(frozen=True)
class Preset:
    """A model shape by name, with the data and training settings that suit a task.

    model: further model settings, or all of them if there is no shape of this name. summary: one line; empty for the
    shape's.
    """

    name: str
    training: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""

    def settings(self) -> dict[str, Any]:
        """Plain data for `RunSettings.parse`."""
        shape = SHAPES[self.name].model if self.name in SHAPES else {}
        found = {"model": {**shape, **self.model}, "training": dict(self.training)}
        return {**found, "data": dict(self.data)} if self.data else found

    def help_text(self) -> str:
        """One line for --help."""
        return self.summary or SHAPES[self.name].summary


class TrainOption(NamedTuple):
    """An option of `regard train` that sets a setting. many: it may be repeated."""

    setting: str
    kind: type
    help: str
    many: bool = False


class Task(ABC):
    """One task.

    name: in settings and over HTTP. verb: the command, and the predictor's method. summary: one line of help. output:
    the label of its output on the page. options: groups of decoding options it accepts (`inference/options.py`).
    metrics: what `regard evaluate` reports; the first one selects checkpoints. metric_inputs: what
    further metrics may be computed from. default_presets: the one for each
    modality that it reads. presets: all that it defines. served: whether `regard serve` serves it. loss: the name of
    its main loss (`training/losses/`). evaluator: how it is evaluated: by its "outputs", or by one of
    `evaluation/evaluators/`. train_options: further options of `regard train`, by name. reads_lines: its command reads
    lines of standard input. test_file, input_example: a test set, and the inputs of a command, as in an example.
    """

    name: ClassVar[str]
    verb: ClassVar[str]
    summary: ClassVar[str]
    output: ClassVar[str]
    options: ClassVar[frozenset[str]]
    metrics: ClassVar[tuple[str, ...]]
    metric_inputs: ClassVar[frozenset[str]] = frozenset({"loss", "text"})
    default_presets: ClassVar[Mapping[str, str]] = {}
    presets: ClassVar[tuple[Preset, ...]] = ()
    served: ClassVar[bool] = True
    loss: ClassVar[str] = "cross-entropy"
    evaluator: ClassVar[str] = "outputs"
    reads_lines: ClassVar[bool] = True
    test_file: ClassVar[str] = "test.tsv"
    input_example: ClassVar[str] = '"A dog runs in the park."'
    train_options: ClassVar[Mapping[str, "TrainOption"]] = {}

    @property
    def title(self) -> str:
        """The name with spaces."""
        return self.name.replace("_", " ")

    # --- data ------------------------------------------------------------------------------------------------------

    def data(self) -> "DatasetKind":
        """How examples are stored, tokenized and batched."""
        from regard.data.dataset_kinds.text_pairs import TextPairs

        return TextPairs()

    def recognizes(self, data: "DataSettings", modality: str) -> float:
        """The confidence, from 0 to 1, that these files are for this task; the task with the highest is chosen."""
        return 0.0

    def modality(self, data: "DataSettings") -> "str | None":
        """The modality that the task takes these files for; None if it is to be detected."""
        return None

    def detect_columns(self, files: tuple[Path, ...]) -> dict[str, Any]:
        """Settings that name the columns of tables, where the task needs some."""
        return {}

    def preset(self, data: "DataSettings", modality: str) -> str:
        """The preset that suits these files. Raises RegardError if the task does not read such a modality."""
        if modality not in self.default_presets:
            raise RegardError(modality_error(self, modality))
        return self.default_presets[modality]

    def configure(self, settings: dict[str, Any]) -> None:  # noqa: B027
        """Adjust plain settings to the task before they are checked."""

    def claims(self, model: "ModelSettings", *, truncate: bool) -> bool:
        """Whether a model was made for this task, where an older or imported run does not name it."""
        return False

    def check(self, model: "ModelSettings") -> None:
        """Raise RegardError if a model cannot be trained for this task. By default it must generate tokens."""
        if not model.decoder.autoregressive:
            raise RegardError(
                f"--preset: this model has a head of the kind {model.decoder.kind}, and {self.name} needs a decoder "
                "that generates tokens; leave it out, or choose another one."
            )

    def default_options(self, options: "Options") -> "Options":
        """Decoding options with the task's own defaults."""
        return options

    def usage(self, run: Path) -> str:
        """The command that uses a run of this task, in a sentence."""
        return f"Use it with: regard {self.verb} {run} {self.input_example}"

    def describe_target(self, target: "Target") -> str:
        """What is predicted, as a short phrase."""
        from regard.data.vocabulary import as_vocabulary

        return f"{len(as_vocabulary(target)):,} subwords"

    def synthetic(self) -> "SyntheticData | None":
        """Synthetic data for a demonstration, if there are any."""
        return None

    # --- inference -------------------------------------------------------------------------------------------------

    @abstractmethod
    def pipeline(self, run: "LoadedRun") -> "Pipeline":
        """The pipeline from inputs to results."""

    def table_layout(self, path: Path, layout: "Layout") -> "Layout":
        """The columns of the inputs in a user's table. layout: of the run's own tables, or given by the user."""
        if layout.question_column is None:
            return layout
        from regard.data.task_columns import layout_with_question

        return layout_with_question(path, layout)

    def verbs(self, predictor: "Predictor") -> Mapping[str, Callable[..., Any]]:
        """The methods of a predictor of this task besides `predict` and `attend`, by name."""
        found: dict[str, Callable[..., Any]] = {"translate": predictor.predict, self.verb: predictor.predict}
        if predictor.description.model.source.is_text:
            found["embed"] = _embed(predictor)
        return found


TASKS: Registry[type[Task]] = Registry(
    "task",
    "regard.tasks",
    helpers=("base", "task_detection", "presets", "synthetic_data", "training_defaults"),
    required=("name", "verb", "summary", "output", "options", "metrics"),
)


def get_task(name: str) -> Task:
    """The task of this name. Raises RegardError if there is none."""
    if not isinstance(name, str):
        raise RegardError(f"task: {name!r} is not possible: it is the name of a task, such as translation.")
    if name not in TASKS and name in VALUES["task"]:
        raise RegardError(f"--task: {name} is now called {VALUES['task'][name]}.")
    return TASKS.get(name)()


def all_tasks() -> list[Task]:
    """Every task that can be trained or used."""
    return [get_task(name) for name in TASKS]


def task_from_description(description: "RunDescription") -> Task:
    """The task that a run was trained for, inferred from its model where an older or imported run does not name it."""
    return get_task(description.task or infer_task(description.model, truncate=description.truncate))


def infer_task(model: "ModelSettings", *, truncate: bool) -> str:
    """The name of the task of a run that does not name it: an older or an imported one. Raises RegardError."""
    for task in all_tasks():
        if task.claims(model, truncate=truncate):
            return task.name
    raise RegardError(
        f"task: no task is known for a model with a source of the kind {model.source.kind} and a decoder of the kind "
        f'{model.decoder.kind}; name it, as in task = "translation".'
    )


def describe_modality(modality: str) -> str:
    """The sources of a modality, such as "images"."""
    from regard.models.settings import SOURCES

    source = SOURCES.get(modality)
    return "plain text, without pairs" if source.is_empty else source.description


def modality_error(task: Task, modality: str) -> str:
    """The error message for files of a modality that a task does not read."""
    if not task.default_presets:
        return f"--task: {task.name} is for imported models; it cannot be trained."
    needed = " or ".join(map(describe_modality, task.default_presets))
    hint = " (name their folder with --media, if it is not the table's)" if modality == "text" else ""
    given = describe_modality(modality)
    return f"--task: {task.name} needs {needed}{hint}, and the sources of these files are {given}."


def build_inputs(run: "LoadedRun") -> "Inputs":
    """The encoding of inputs of a run's modality."""
    source = run.description.model.source
    if source.is_text:
        from regard.inference.inputs.text import TextInputs

        return TextInputs(run)
    if source.is_empty:
        from regard.inference.inputs.prompt import PromptInputs

        return PromptInputs(run)
    from regard.inference.inputs.media import MediaInputs

    return MediaInputs(run)


def sequence_pipeline(run: "LoadedRun") -> "Pipeline":
    """The pipeline of autoregressive models and of classifiers."""
    from regard.inference.pipelines.sequence import SequencePipeline

    return SequencePipeline(run, build_inputs(run))


def _embed(predictor: "Predictor") -> Callable[..., Any]:
    def embed(texts: Any, *, normalize: bool = True, **more: Any) -> Any:
        """One vector for each text, [N, width]; of one text, [width]."""
        from regard.inference.pipelines.text_embedding import embed_texts

        single = isinstance(texts, str)
        vectors = embed_texts(predictor.run, [texts] if single else list(texts), normalize=normalize, **more)
        return vectors[0] if single else vectors

    return embed
