"""Other runs to begin with: what they have learnt of reading or of writing, for a new task.

An encoder that was trained to guess hidden words, or to translate, or that was imported, becomes the encoder of a new
model; a language model becomes its decoder, whose attention to what is read is new. The vocabulary comes along.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regard.errors import RegardError
from regard.models.settings import DECODERS, ENCODERS
from regard.runs.folder import RunFolder, open_run
from regard.settings import merged

if TYPE_CHECKING:
    from regard.models.seq2seq import Seq2Seq

Part = Literal["encoder", "decoder"]
NEW = ("decoder.layers.{}.memory.", "decoder.layers.{}.memory_norm.")  # what a language model lacks


def part_of(opened: RunFolder) -> Part:
    """What a new model takes from a run: its encoder, or the decoder of one that reads nothing. Raises RegardError."""
    about = opened.description.model
    if about.source.is_empty:
        return "decoder"
    if about.source.is_text and not about.encoder.is_identity:
        return "encoder"
    raise RegardError(f"--init: {opened.folder} has no encoder of texts and no language model to begin with.")


def _accepts(part: Part, kind: str) -> bool:
    """Whether a component of this kind can start with the weights of another run's."""
    return not ENCODERS.get(kind).is_identity if part == "encoder" else DECODERS.get(kind).works_without_source


def settings_from(runs: Sequence[Path], preset: dict[str, Any]) -> dict[str, Any]:
    """What a preset becomes with parts of these runs."""
    found: dict[str, Any] = {"model": {}, "data": {}, "training": {"init": [str(run) for run in runs]}}
    taken: dict[Part, Path] = {}
    for run in runs:
        opened = open_run(run)
        about, part = opened.description.model, part_of(opened)
        if part in taken:
            raise RegardError(
                f"--init: there is one {part}, and {taken[part]} and {run} both have it; give one of them."
            )
        if not _accepts(part, preset["model"][part]["kind"]):
            raise RegardError(f"--init: the model of this task has no {part} to begin with {run}; leave it out.")
        taken[part] = run
        own = about.encoder if part == "encoder" else about.decoder
        found["model"][part] = own.model_dump(exclude_none=True)
        side = "source" if part == "encoder" else "target"
        found["data"][f"{side}_vocabulary"] = str((run / f"{side}.subwords").absolute())
        found["data"]["lowercase"] = opened.description.lowercase
        if own.max_length is not None:
            found["data"]["longest"] = min(own.max_length, preset.get("data", {}).get("longest", own.max_length))
        if part == "encoder":
            own_source, wanted = about.source.model_dump(), preset["model"].get("source", {})
            # Parts that the new task tells apart, and the mark that it needs, come with it.
            own_source["segments"] = max(own_source["segments"], wanted.get("segments", 1))
            own_source["bos"] = own_source["bos"] or wanted.get("bos", False)
            found["model"]["source"] = own_source
        found["training"]["learning_rate"] = 0.04 / own.width  # 5e-5 for BERT, more for what is smaller
        found["training"]["warmup"] = 100
    whole = merged(preset, found)
    decoder = whole["model"]["decoder"]
    if "encoder" in taken and "decoder" not in taken:
        encoder = whole["model"]["encoder"]
        sizes = ("width", "heads", "feedforward") if decoder["kind"] == encoder["kind"] == "transformer" else ("width",)
        decoder |= {name: encoder[name] for name in sizes if name in encoder}
        decoder.pop("embedding", None)
    if "decoder" in taken and whole["model"].get("tie") == "all":
        whole["model"]["tie"] = "target"  # what is read and what is said have vocabularies of their own
    if "decoder" in taken:
        whole["data"].setdefault("subwords", {})["joint"] = False
    return whole


def begin_with(model: "Seq2Seq", runs: Sequence[Path]) -> None:
    """Put the weights of these runs into a new model. Raises RegardError if one does not fit."""
    from regard.runs.bundle import module_tensors, read_tensors

    own = module_tensors(model)
    for run in runs:
        opened = open_run(run)
        part = part_of(opened)
        theirs = read_tensors(run / "model.safetensors")
        for name, tensor in own.items():
            if not name.startswith(f"{part}.") or _is_new(name, model):
                continue
            known = theirs.get(name)
            if known is None and name == "encoder.embedding.segment":
                continue  # parts that this run has not told apart
            if known is None or known.shape != tensor.shape:
                what = "is missing" if known is None else f"is {tuple(known.shape)}, and not {tuple(tensor.shape)}"
                raise RegardError(
                    f"--init: {run}: tensor {name} {what}; leave the settings of its {part} as they were."
                )
            tensor.copy_(known)


def _is_new(name: str, model: "Seq2Seq") -> bool:
    """Whether a tensor of the decoder is one that a language model cannot have."""
    layers = getattr(model.settings.decoder, "layers", 0)
    return any(name.startswith(pattern.format(layer)) for pattern in NEW for layer in range(layers))
