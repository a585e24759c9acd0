"""Warm start: a new model starts with the encoder or the decoder of other runs.

The encoder of a masked language model, of a translation model or of an imported model becomes the encoder of the new
model; a language model becomes its decoder, whose cross-attention is new. The vocabulary is taken along.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regard.errors import RegardError
from regard.models.settings import DECODERS, ENCODERS
from regard.runs.folder import RunFolder, open_run
from regard.settings import merge_settings

if TYPE_CHECKING:
    from regard.models.seq2seq import Seq2Seq

Component = Literal["encoder", "decoder"]
# Cross-attention, which a language model lacks.
NEW_PARAMETERS = ("decoder.layers.{}.cross_attention.", "decoder.layers.{}.cross_attention_norm.")


def reusable_component(opened: RunFolder) -> Component:
    """What a new model takes from a run: its encoder, or the decoder of a language model. Raises RegardError."""
    model_settings = opened.description.model
    if model_settings.source.is_empty:
        return "decoder"
    if model_settings.source.is_text and not model_settings.encoder.is_identity:
        return "encoder"
    raise RegardError(f"--init: {opened.folder} has no encoder of texts and no language model to start from.")


def _accepts(component: Component, kind: str) -> bool:
    """Whether a component of this kind can be initialized from another run."""
    return not ENCODERS.get(kind).is_identity if component == "encoder" else DECODERS.get(kind).works_without_source


def warm_start_settings(runs: Sequence[Path], preset: dict[str, Any]) -> dict[str, Any]:
    """The settings of a preset whose encoder or decoder comes from these runs."""
    changes: dict[str, Any] = {"model": {}, "data": {}, "training": {"init": [str(run) for run in runs]}}
    sources: dict[Component, Path] = {}
    for run in runs:
        opened = open_run(run)
        model_settings, component = opened.description.model, reusable_component(opened)
        if component in sources:
            raise RegardError(
                f"--init: there is one {component}, and {sources[component]} and {run} both have it; give one of them."
            )
        if not _accepts(component, preset["model"][component]["kind"]):
            raise RegardError(f"--init: this task's model has no {component} to initialize from {run}; leave it out.")
        sources[component] = run
        component_settings = model_settings.encoder if component == "encoder" else model_settings.decoder
        changes["model"][component] = component_settings.model_dump(exclude_none=True)
        side = "source" if component == "encoder" else "target"
        changes["data"][f"{side}_vocabulary"] = str((run / f"{side}.subwords").absolute())
        changes["data"]["lowercase"] = opened.description.lowercase
        if (max_length := component_settings.max_length) is not None:
            changes["data"]["max_tokens"] = min(max_length, preset.get("data", {}).get("max_tokens", max_length))
        if component == "encoder":
            source_settings, preset_source = model_settings.source.model_dump(), preset["model"].get("source", {})
            # The segments and the BOS token that the new task needs are added.
            source_settings["segments"] = max(source_settings["segments"], preset_source.get("segments", 1))
            source_settings["bos"] = source_settings["bos"] or preset_source.get("bos", False)
            changes["model"]["source"] = source_settings
        changes["training"]["learning_rate"] = 0.04 / component_settings.width  # 5e-5 for BERT
        changes["training"]["warmup_steps"] = 100
    settings = merge_settings(preset, changes)
    decoder = settings["model"]["decoder"]
    if "encoder" in sources and "decoder" not in sources:
        encoder = settings["model"]["encoder"]
        sizes = ("width", "heads", "feedforward") if decoder["kind"] == encoder["kind"] == "transformer" else ("width",)
        decoder |= {name: encoder[name] for name in sizes if name in encoder}
        decoder.pop("embedding", None)
    if "decoder" in sources and settings["model"].get("tie") == "all":
        settings["model"]["tie"] = "target"  # source and target have separate vocabularies
    if "decoder" in sources:
        settings["data"].setdefault("subwords", {})["joint"] = False
    return settings


def warm_start_from(model: "Seq2Seq", runs: Sequence[Path]) -> None:
    """Copy the weights of these runs into a new model. Raises RegardError if a shape does not match."""
    from regard.runs.bundle import module_tensors, read_weights

    parameters = module_tensors(model)
    for run in runs:
        opened = open_run(run)
        component = reusable_component(opened)
        pretrained = read_weights(run / "model.safetensors")
        for name, tensor in parameters.items():
            if not name.startswith(f"{component}.") or _is_new_parameter(name, model):
                continue
            value = pretrained.get(name)
            if value is None and name == "encoder.embedding.segment":
                continue  # the run has no segment embedding
            if value is None or value.shape != tensor.shape:
                what = "is missing" if value is None else f"is {tuple(value.shape)}, and not {tuple(tensor.shape)}"
                raise RegardError(
                    f"--init: {run}: tensor {name} {what}; leave the settings of its {component} as they were."
                )
            tensor.copy_(value)


def _is_new_parameter(name: str, model: "Seq2Seq") -> bool:
    """Whether a parameter belongs to cross-attention, which a language model lacks."""
    layers = getattr(model.settings.decoder, "layers", 0)
    return any(name.startswith(pattern.format(layer)) for pattern in NEW_PARAMETERS for layer in range(layers))
