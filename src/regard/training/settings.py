"""Settings of training, and of a whole run. Imports no PyTorch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from regard.data.settings import DataSettings
from regard.errors import RegardError
from regard.evaluation.metrics import METRICS
from regard.models.settings import DECODERS, ModelSettings
from regard.renames import migrate
from regard.settings import Settings, apply_assignments, merge_settings
from regard.tasks.base import Task, all_tasks, describe_modality, get_task, infer_task
from regard.tasks.presets import preset_settings, preset_task
from regard.tasks.task_detection import detect_modality, detect_task

Count = Annotated[int, Field(ge=1)]


class TrainingSettings(Settings):
    """The options of training."""

    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] = 1
    init: tuple[Path, ...] = ()  # runs whose encoder or decoder initializes a new model (warm start)
    batch_tokens: Annotated[int, Field(ge=16)] | None = (
        None  # of a batch's longer side, padded; by data size if not given
    )
    gradient_accumulation: Count = 1  # batches per step
    steps: Count = 10_000  # at most
    epochs: Count | None = None  # passes over the data, at most
    minutes: Annotated[float, Field(gt=0)] | None = None  # of training in all; the schedule is fitted to them
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3  # the highest
    schedule: Literal["inverse-sqrt", "cosine", "constant"] = "inverse-sqrt"
    warmup_steps: Annotated[int, Field(ge=0)] = 500  # steps until the highest learning rate
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # of matrix products; auto: the faster one
    max_grad_norm: Annotated[float, Field(ge=0)] = 1.0  # the maximum norm of the gradient; 0 for no clipping
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.1  # label smoothing
    rdrop_weight: Annotated[float, Field(ge=0)] = 0.0  # R-Drop: of the divergence between two passes
    alignment_weight: Annotated[float, Field(gt=0)] = 0.05  # of guided alignment, if data.alignment is given
    doubly_stochastic: Annotated[float, Field(ge=0)] = 0.0  # weight of doubly stochastic attention
    coverage_loss: Annotated[float, Field(ge=0)] = 0.0  # weight of the coverage loss
    ema_decay: Annotated[float, Field(ge=0, lt=1)] = 0.0  # decay of the moving average of the weights, such as 0.999
    averaged_checkpoints: Count = 5  # checkpoints, the best by validation, that are averaged at the end
    validate_every: Count | None = None  # steps; an epoch, but at least 200 steps, if not given
    metric: str = ""  # of validation, which selects the best checkpoints; the task's first one if not given
    patience: Count = 10  # early stopping: validations without improvement before training stops
    save_every: Count | None = None  # steps between checkpoints, in addition to those at validation

    @field_validator("metric")
    @classmethod
    def _canonical_metric(cls, name: str) -> str:
        return METRICS.canonical(name) if name else name

    @model_validator(mode="after")
    def _check_betas(self) -> "TrainingSettings":
        if not all(0 <= beta < 1 for beta in self.betas):
            raise RegardError("betas must be at least 0 and below 1")
        return self


class RunSettings(Settings):
    """All settings of a run; saved in its folder as settings.toml."""

    task: str = ""  # inferred from the model if not given
    preset: str | None = None
    model: ModelSettings = ModelSettings()
    data: DataSettings = DataSettings()
    training: TrainingSettings = TrainingSettings()

    @model_validator(mode="after")
    def _resolve_task(self) -> "RunSettings":
        if not self.task:
            object.__setattr__(self, "task", infer_task(self.model, truncate=self.data.truncate))
        task = get_task(self.task)
        documents = task.data().documents
        if self.data.text and not documents:
            known = " or ".join(each.name for each in all_tasks() if each.data().documents)
            raise RegardError(f"--task: plain text is for language models; choose --task {known}, or a preset of them")
        if documents and (self.data.pairs or self.data.source):
            raise RegardError(f"this model learns from plain text, not from pairs; use --task {task.name}")
        if self.data.series != type(self.data.series)() and not task.data().reads_series:
            raise RegardError(
                f"data.series: horizon, time, series and known are for forecasting, and this trains for {task.title}; "
                "leave them out"
            )
        task.check(self.model)
        self._resolve_metric(task)
        return self

    def _resolve_metric(self, task: Task) -> None:
        """Set the metric to the task's first one if none is given. Raises RegardError if the task lacks its inputs."""
        name = self.training.metric or task.metrics[0]
        available = task.metric_inputs | {METRICS.get(each).inputs for each in task.metrics}
        if (needed := METRICS.get(name).inputs) not in available:
            suitable = ", ".join(each for each, metric in METRICS.items() if metric.inputs in available)
            raise RegardError(
                f"training.metric: {name} is computed from {needed}, which {task.title} does not have; choose one of "
                f"{suitable}"
            )
        if not self.training.metric:
            object.__setattr__(self, "training", self.training.model_copy(update={"metric": name}))

    @model_validator(mode="after")
    def _check_compatibility(self) -> "RunSettings":
        if self.model.tie == "all" and not self.data.subwords.joint:
            raise RegardError("model.tie is all, which needs data.subwords.joint; or set model.tie to target")
        if self.model.decoder.copies and not self.data.subwords.joint:
            raise RegardError("model.decoder.copy_mechanism needs data.subwords.joint: what is copied must be in both")
        segments = self.model.source.segments_of_text
        if self.data.question_column is not None and segments == 1:
            raise RegardError(
                "data.question_column: set model.source.segments to 2, so that passage and question are two segments"
            )
        next_sentence = self.model.decoder.next_sentence_prediction
        if self.data.text and self.model.decoder.masked_lm and next_sentence != (segments > 1):
            raise RegardError(
                "model.decoder.next_sentence = true and model.source.segments = 2 go together: whether the second of "
                "two segments follows the first"
            )
        self._check_losses()
        for name, component in (("encoder", self.model.encoder), ("decoder", self.model.decoder)):
            reads_tokens = name == "decoder" or self.model.source.is_text
            if reads_tokens and component.max_length is not None and component.max_length < self.data.max_tokens:
                raise RegardError(
                    f"model.{name} has {component.max_length} positions, but data.max_tokens allows "
                    f"{self.data.max_tokens} tokens; set model.{name}.max_positions to as many"
                )
        return self

    def _check_losses(self) -> None:
        """Raise RegardError for loss terms that cannot be combined with each other or with the model."""
        decoder, training = self.model.decoder, self.training
        attends = decoder.attends and not self.model.source.is_empty
        if (training.doubly_stochastic or training.coverage_loss) and not attends:
            raise RegardError("training.doubly_stochastic and coverage_loss are for decoders that attend to a source")
        if training.rdrop_weight and not decoder.has_output:
            raise RegardError("training.rdrop_weight: two passes are compared by probabilities; leave it out")
        if training.rdrop_weight and self.model.decoder.copies:
            raise RegardError(
                "training.rdrop_weight: two passes cannot be compared where tokens are copied; leave one out"
            )
        if training.rdrop_weight and getattr(decoder, "estimator", "") == "reinforce":
            raise RegardError(
                "training.rdrop_weight: it cannot be combined with REINFORCE; set model.decoder.estimator to gumbel"
            )
        if self.data.alignment:
            if not self.model.aligns:
                raise RegardError("data.alignment: links are between the words of two texts")
            if not attends:
                raise RegardError("data.alignment: a decoder without attention cannot learn where to attend")
            if getattr(decoder, "normalize", None) == "hard":
                raise RegardError("data.alignment: hard attention learns where to attend by its draws alone")


def run_settings(
    name: str | None,
    file: dict[str, Any],
    assignments: list[str],
    options: dict[str, Any],
    *,
    task: str | None = None,
    init: Sequence[Path] = (),
) -> RunSettings:
    """Merge, in order: a preset (`name`, or that of the file, or a default for the task and the files), the runs of a
    warm start, the configuration file, the command's options in `options`, and each assignment of --set."""
    file = migrate(file)
    _check_tables(file)
    name = name or file.get("preset")
    modality, task_given = None, task is not None
    task = task or file.get("task")
    if name is None or task_given:
        data = _data_settings(file, options, assignments)
        modality = (get_task(task).modality(data) if task is not None else None) or detect_modality(data)
        resolved_task = get_task(task) if task is not None else detect_task(data, modality)
        default_preset = resolved_task.preset(data, modality)
        if data.pairs and all(each is None for each in (data.source_column, data.target_column, data.question_column)):
            columns = resolved_task.detect_columns(data.pairs)
            options, data = merge_settings({"data": columns}, options), data.model_copy(update=columns)
        if name is None:
            default_preset = resolved_task.preset(data, modality)
        name = name or default_preset
        task = resolved_task.name
    preset = preset_settings(str(name))
    if init:
        from regard.training.warm_start import warm_start_settings

        preset = warm_start_settings(init, preset)
    everything = _apply_assignments(
        merge_settings(merge_settings({**preset, "preset": name}, {**file, "preset": name}), options), assignments
    )
    _check_tables(everything)
    everything["task"] = task or preset.get("task", "")
    _match_width(everything.get("model", {}), file.get("model", {}), assignments)
    everything["task"] = everything["task"] or preset_task(str(name)) or RunSettings.parse(everything).task
    get_task(everything["task"]).configure(everything)
    settings = RunSettings.parse(everything)
    _check_modality(settings, modality)
    return settings


def _data_settings(file: dict[str, Any], options: dict[str, Any], assignments: list[str]) -> DataSettings:
    data_assignments = [each for each in assignments if each.startswith("data.")]
    everything = _apply_assignments(merge_settings({"data": {}, **file}, options), data_assignments)
    return DataSettings.parse(everything.get("data", {}), above="data")


def _check_tables(settings: dict[str, Any]) -> None:
    """Raise RegardError for a single value where a table of settings belongs."""
    model = settings.get("model")
    tables = {name: settings.get(name) for name in ("model", "data", "training")}
    if isinstance(model, dict):
        tables |= {f"model.{name}": model.get(name) for name in ("source", "encoder", "decoder")}
    for path, table in tables.items():
        if table is not None and not isinstance(table, dict):
            raise RegardError(
                f"{path}: {table!r} is not possible: it is a table of settings, such as {path}.NAME=VALUE."
            )
        if isinstance(table, dict) and not isinstance(table.get("kind", ""), str):
            raise RegardError(f"{path}.kind: {table['kind']!r} is not possible: it is a name.")


def _match_width(model: dict[str, Any], file: dict[str, Any], assignments: list[str]) -> None:
    """Set the width of a per-position head to that of the encoder, unless it is given."""
    decoder = model.get("decoder", {})
    is_given = "width" in file.get("decoder", {}) or any(each.startswith("model.decoder.width") for each in assignments)
    if (
        decoder.get("kind") in DECODERS
        and DECODERS.get(decoder["kind"]).per_position
        and not is_given
        and "width" in model.get("encoder", {})
    ):
        decoder["width"] = model["encoder"]["width"]


def _check_modality(settings: RunSettings, modality: str | None) -> None:
    """Raise RegardError if a text model would read the file names of images or recordings as text."""
    files = (*settings.data.pairs, *settings.data.source)
    if settings.model.source.is_text and not settings.data.text and all(path.exists() for path in files):
        modality = modality or detect_modality(settings.data)
        if modality != settings.model.source.kind:
            what = describe_modality(modality)
            raise RegardError(
                f"--preset: {settings.preset} reads text, and the sources of these files are {what}; leave it out, or "
                f"choose one of those for {what}: regard presets lists them."
            )


def _apply_assignments(everything: dict[str, Any], assignments: list[str]) -> dict[str, Any]:
    """Apply --set. A new kind, as in model.encoder.kind=recurrent, replaces the whole table, so kinds are set first."""
    if any(each.partition("=")[0].strip() == "preset" for each in assignments):
        raise RegardError("--set: a preset is chosen with --preset.")
    if any(each.partition("=")[0].strip() == "task" for each in assignments):
        raise RegardError("--set: a task is chosen with --task.")
    kinds = [each for each in assignments if each.partition("=")[0].strip().endswith(".kind")]
    other_assignments = [each for each in assignments if each not in kinds]
    return apply_assignments(merge_settings(everything, apply_assignments({}, kinds)), other_assignments)
