"""A trained model with its weights in PyTorch, from its folder and into it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.data.vocabulary import SourceSide, Vocabulary
from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.runs.folder import Description, open_folder, write_durably


@dataclass(frozen=True)
class Bundle:
    """A model, what it reads and says, and its description."""

    description: Description
    model: Seq2Seq
    source_side: SourceSide
    target_side: Vocabulary


def tensors_of(module: nn.Module) -> dict[str, Tensor]:
    """Every parameter and buffer once, by name; shared ones under their first name."""
    parts = {name: value.detach() for name, value in module.named_parameters()}
    return parts | {name: value.detach() for name, value in module.named_buffers()}


def put_tensors(module: nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Copy tensors into a module. Raises RegardError naming what is missing, too much, or of another shape."""
    check_tensors(module, tensors, where)
    own = tensors_of(module)
    with torch.no_grad():
        for name, value in tensors.items():
            own[name].copy_(value)


def check_tensors(module: nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Raises RegardError naming what a module misses, what is too much, or what is of another shape."""
    own = tensors_of(module)
    for name in own.keys() ^ tensors.keys():
        raise RegardError(f"{where}: tensor {name} {'is missing' if name in own else 'has no place in this model'}.")
    for name, value in tensors.items():
        if own[name].shape != value.shape:
            raise RegardError(
                f"{where}: tensor {name} is {tuple(value.shape)}, the model has {tuple(own[name].shape)}."
            )


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file. Raises RegardError if it is damaged."""
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:  # which safetensors says of a file that may not be read, too
        what = "it may not be read; check its permissions" if path.exists() else "there is no such file"
        raise RegardError(f"{path}: {what}.") from None
    except (SafetensorError, OSError) as error:
        raise RegardError(
            f"{path}: it is damaged and cannot be read ({error}); copy it again, or make a run's own anew with regard "
            f"train --resume."
        ) from None


def as_bytes(tensors: Mapping[str, Tensor], about: dict[str, str] | None = None) -> bytes:
    """A safetensors file's content."""
    return save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, about)


def save_bundle(folder: Path, bundle: Bundle, tensors: Mapping[str, Tensor] | None = None) -> None:
    """Into a folder; `tensors` in place of the model's own, such as an average."""
    if isinstance(bundle.source_side, SubwordTokenizer):
        write_durably(folder / "source.subwords", bundle.source_side.model)
    write_durably(folder / bundle.target_side.target_file, bundle.target_side.model)
    weights = tensors_of(bundle.model) if tensors is None else tensors
    write_durably(folder / "model.safetensors", as_bytes(weights, {"format": "pt"}))
    # Last, since a folder with a model.toml is taken for a whole model.
    write_durably(folder / "model.toml", bundle.description.as_toml().encode())


def new_model(settings: ModelSettings, source: SourceSide, target: Vocabulary) -> Seq2Seq:
    """A model for what these read and say."""
    entries = len(source) if isinstance(source, SubwordTokenizer) else 0
    return Seq2Seq(settings, source_vocabulary=entries, target_vocabulary=len(target))


def load_bundle(folder: Path, device: str = "cpu") -> Bundle:
    """From a folder. Raises RegardError, in one sentence, if it is not a trained run."""
    opened = open_folder(folder)
    source, target = opened.source_side, opened.target_side
    try:
        with torch.random.fork_rng(devices=[]):  # drawing weights that are overwritten must not move anybody's dice
            model = new_model(opened.description.model, source, target)
    except RegardError as error:
        raise RegardError(f"{folder / 'model.toml'}: {error}") from None
    put_tensors(model, read_tensors(folder / "model.safetensors"), str(folder / "model.safetensors"))
    return Bundle(opened.description, model.to(device).eval(), source, target)
