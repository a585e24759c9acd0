"""Settings of training, and of a whole run. Imports no PyTorch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from regard.data.settings import DataSettings
from regard.errors import RegardError
from regard.evaluation.metrics import METRICS
from regard.models.presets import preset
from regard.models.settings import ModelSettings
from regard.settings import Settings, changed, merged
from regard.training.tasks import answered_by, columns_for, is_squad, medium_in, preset_for, task_in

Count = Annotated[int, Field(ge=1)]


class TrainingSettings(Settings):
    """How a model learns."""

    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] = 1
    init: tuple[Path, ...] = ()  # runs whose encoder or decoder a new model begins with
    tokens: Annotated[int, Field(ge=16)] | None = None  # of a batch's longer side, padded; by the data if not given
    accumulate: Count = 1  # batches a step
    steps: Count = 10_000  # at most
    epochs: Count | None = None  # passes over the data, at most
    minutes: Annotated[float, Field(gt=0)] | None = None  # of training in all; the schedule is fitted to them
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3  # the highest
    schedule: Literal["inverse-sqrt", "cosine", "constant"] = "inverse-sqrt"
    warmup: Annotated[int, Field(ge=0)] = 500  # steps until the highest learning rate
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # of matrix products; auto is the faster one here
    clip: Annotated[float, Field(ge=0)] = 1.0  # the gradient's norm at most; 0 for no clipping
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.1  # of labels
    agreement: Annotated[float, Field(ge=0)] = 0.0  # R-Drop: how much two passes with other dropout must agree
    guidance: Annotated[float, Field(gt=0)] = 0.05  # how much attention learns from data.alignment, where there is one
    attend_everywhere: Annotated[float, Field(ge=0)] = 0.0  # doubly stochastic: each place is to get 1 look in all
    attend_once: Annotated[float, Field(ge=0)] = 0.0  # coverage loss: no place is to be looked at again
    average: Annotated[float, Field(ge=0, lt=1)] = 0.0  # exponential average of the weights: its memory, such as 0.999
    best: Count = 5  # checkpoints, the best by validation, that are averaged at the end
    validate_every: Count | None = None  # steps; an epoch, but at least 200 steps, if not given
    metric: str = "bleu"  # of validation: the best by it are kept, as a metric's name in `regard.evaluation.metrics`
    patience: Count = 10  # validations without a better one, after which training stops
    save_every: Count | None = None  # steps between checkpoints beside those at validation

    @field_validator("metric")
    @classmethod
    def _metric_is_registered(cls, name: str) -> str:
        return METRICS.canonical(name)

    @model_validator(mode="after")
    def _betas_are_shares(self) -> "TrainingSettings":
        if not all(0 <= beta < 1 for beta in self.betas):
            raise RegardError("betas must be at least 0 and below 1")
        return self


class RunSettings(Settings):
    """Everything a run is made of; saved in its folder as settings.toml."""

    preset: str | None = None
    model: ModelSettings = ModelSettings()
    data: DataSettings = DataSettings()
    training: TrainingSettings = TrainingSettings()

    @model_validator(mode="after")
    def _parts_fit(self) -> "RunSettings":
        if self.model.tie == "all" and not self.data.subwords.joint:
            raise RegardError("model.tie is all, which needs data.subwords.joint; or set model.tie to target")
        decoder = self.model.decoder
        attends = decoder.kind != "pooling" and not (decoder.kind == "recurrent" and decoder.attend == "never")
        if (self.training.attend_everywhere or self.training.attend_once) and not attends:
            raise RegardError("training.attend_everywhere and attend_once are for decoders that attend")
        if self.model.copies and not self.data.subwords.joint:
            raise RegardError("model.decoder.copy_words needs data.subwords.joint: what is copied must be sayable")
        if self.model.copies and self.training.agreement:
            raise RegardError("training.agreement: two passes cannot be compared where words are copied; leave one out")
        parted = getattr(self.model.source, "segments", 1) > 1
        if self.data.question_column is not None and not parted:
            raise RegardError(
                "data.question_column: set model.source.segments to 2, so that the parts can be told apart"
            )
        plain = self.model.source.kind == "nothing" or self.model.guesses
        if self.data.text and not plain:
            raise RegardError(
                "--task: plain text is for language models; choose --task language or mask, or a preset of them"
            )
        if plain and (self.data.pairs or self.data.source):
            task = "mask" if self.model.guesses else "language"
            raise RegardError(f"this model learns from plain text, not from pairs; say --task {task}")
        if self.model.decoder.kind == "none":
            raise RegardError("model.decoder.kind: a model that says nothing has nothing to learn by")
        if self.model.guesses and self.data.text:
            follows = getattr(self.model.decoder, "follows", False)
            if follows != (getattr(self.model.source, "segments", 1) > 1):
                raise RegardError(
                    "model.decoder.follows = true and model.source.segments = 2 go together: whether the second of two "
                    "parts follows the first"
                )
        if self.data.alignment:
            if not self.model.aligns:
                raise RegardError("data.alignment: links are between the words of two texts")
            if decoder.kind == "recurrent" and decoder.attend == "never":
                raise RegardError("data.alignment: a decoder without attention cannot learn where to look")
            if getattr(decoder, "normalize", None) == "hard":
                raise RegardError("data.alignment: hard attention learns where to look by its draws alone")
        for name, part in (("encoder", self.model.encoder), ("decoder", self.model.decoder)):
            reads_text = name == "decoder" or self.model.source.kind == "text"
            if reads_text and part.most_tokens is not None and part.most_tokens < self.data.longest:
                raise RegardError(
                    f"model.{name} has {part.most_tokens} places, but data.longest allows {self.data.longest} tokens; "
                    f"set model.{name}.positions to as many"
                )
        return self


def run_settings(
    name: str | None,
    file: dict[str, Any],
    assignments: list[str],
    given: dict[str, Any],
    *,
    task: str | None = None,
    init: Sequence[Path] = (),
) -> RunSettings:
    """A preset (of the command or the file, or what suits the task and the files), then the runs that it begins with,
    then the file, then what the command says, then each --set."""
    name = name or file.get("preset")
    medium = None
    if name is None or task is not None:
        said = _set(merged({"data": {}, **file}, given), [one for one in assignments if one.startswith("data.")])
        try:
            data = DataSettings.parse(said.get("data", {}))
        except RegardError as error:
            raise RegardError(f"data.{error}") from None
        medium = medium_in(data)
        task = task or task_in(data, medium)
        suits = preset_for(task, medium)
        asked = (data.source_column, data.target_column, data.question_column)
        if all(each is None for each in asked):
            columns = columns_for(task, data.pairs)
            if task == "span" and data.pairs and "question_column" not in columns and not is_squad(data.pairs[0]):
                raise RegardError(
                    f"--task span: {data.pairs[0]} has no columns for passage, question and answer; call them context, "
                    f"question and answer, or name them with --set data.source_column, question_column, target_column."
                )
            given, data = merged({"data": columns}, given), data.model_copy(update=columns)
        name = name or (answered_by(data) if task == "answer" and data.pairs else suits)
    begun = preset(str(name))
    if init:
        from regard.training.warm_start import settings_from

        begun = settings_from(init, begun)
    everything = _set(merged(merged({**begun, "preset": name}, {**file, "preset": name}), given), assignments)
    everything.get("model", {}).get("source", {}).setdefault("kind", "text")
    _as_wide(everything.get("model", {}), file.get("model", {}), assignments)
    if task == "classify" and everything.get("data", {}).get("question_column") is not None:  # two texts, one class
        source = everything["model"].setdefault("source", {"kind": "text"})
        source["segments"] = max(2, source.get("segments", 1))
    settings = RunSettings.parse(everything)
    if (task == "mask" and not settings.model.guesses) or (
        task == "language" and settings.model.source.kind != "nothing"
    ):
        raise RegardError(f"--preset: {name} is not for --task {task}; leave one of them out.")
    _check_medium(settings, medium)
    return settings


def _as_wide(model: dict[str, Any], file: dict[str, Any], assignments: list[str]) -> None:
    """What says something at every place is as wide as what reads, if nobody says otherwise."""
    decoder = model.get("decoder", {})
    said = "width" in file.get("decoder", {}) or any(one.startswith("model.decoder.width") for one in assignments)
    if decoder.get("kind") == "places" and not said and "width" in model.get("encoder", {}):
        decoder["width"] = model["encoder"]["width"]


def _check_medium(settings: RunSettings, found: str | None) -> None:
    """Raises RegardError if a model would take the names of pictures or recordings for text."""
    reads = settings.model.source.kind
    files = (*settings.data.pairs, *settings.data.source)
    if reads == "text" and not settings.data.text and all(path.exists() for path in files):
        found = found or medium_in(settings.data)
        if found != "text":
            what = {"images": "pictures", "speech": "recordings"}[found]
            raise RegardError(
                f"--preset: {settings.preset} reads text, and the sources of these files are {what}; leave it out, or "
                f"choose one of those for {what}: regard presets lists them."
            )


def _set(everything: dict[str, Any], assignments: list[str]) -> dict[str, Any]:
    """--set model.encoder.kind=recurrent replaces the whole encoder: the other kind's fields mean nothing to it."""
    if any(one.partition("=")[0].strip() == "preset" for one in assignments):
        raise RegardError("--set: a preset is chosen with --preset.")
    kinds = [one for one in assignments if one.partition("=")[0].strip().endswith(".kind")]
    others = [one for one in assignments if one not in kinds]
    return changed(merged(everything, changed({}, kinds)), others)
