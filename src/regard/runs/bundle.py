"""A trained model with its weights in PyTorch: saved to its folder and loaded from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from regard.data.targets.base import Target
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.data.vocabulary import SourceProcessor, Vocabulary, as_vocabulary, has_tokens
from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.runs.folder import WEIGHTS_METADATA, RunDescription, open_run, stored_names, write_durably


@dataclass(frozen=True)
class Bundle:
    """A model, its source and target vocabularies, and its description."""

    description: RunDescription
    model: Seq2Seq
    source_processor: SourceProcessor
    target: Target

    @property
    def target_vocabulary(self) -> Vocabulary:
        """The target as tokens. Raises RegardError for a model that predicts none."""
        return as_vocabulary(self.target)


def module_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Every parameter and buffer once, by name; shared ones under their first name."""
    parameters = {name: value.detach() for name, value in module.named_parameters()}
    return parameters | {name: value.detach() for name, value in module.named_buffers()}


def copy_tensors_into(module: nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Copy tensors into a module's parameters and buffers. Raises RegardError like check_tensors."""
    check_tensors(module, tensors, where)
    own = module_tensors(module)
    with torch.no_grad():
        for name, value in tensors.items():
            own[name].copy_(value)


def check_tensors(module: nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Raises RegardError, naming the tensor, if one is missing, unexpected, or of another shape."""
    own = module_tensors(module)
    for name in own.keys() ^ tensors.keys():
        raise RegardError(f"{where}: tensor {name} {'is missing' if name in own else 'does not belong to this model'}.")
    for name, value in tensors.items():
        if own[name].shape != value.shape:
            raise RegardError(
                f"{where}: tensor {name} is {tuple(value.shape)}, the model has {tuple(own[name].shape)}."
            )


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file. Raises RegardError if it is damaged."""
    return _read(path, lambda file: {name: name for name in file.keys()})  # noqa: SIM118


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a file that regard wrote, by their present names. Raises RegardError if it is damaged."""
    return _read(path, stored_names)


def _read(path: Path, stored_names: Callable[[Any], Mapping[str, str]]) -> dict[str, Tensor]:
    """stored_names: the names to return of an open file, and those that they have in it."""
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(stored) for name, stored in stored_names(file).items()}
    except FileNotFoundError:  # safetensors raises this also for a file without read permission
        problem = "it may not be read; check its permissions" if path.exists() else "there is no such file"
        raise RegardError(f"{path}: {problem}.") from None
    except (SafetensorError, OSError) as error:
        raise RegardError(
            f"{path}: it is damaged and cannot be read ({error}); copy it again, or make a run's own anew with regard "
            f"train --resume."
        ) from None


def serialize_tensors(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Tensors as the content of a safetensors file."""
    return save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, metadata)


def save_bundle(folder: Path, bundle: Bundle, tensors: Mapping[str, Tensor] | None = None) -> None:
    """Write a model into a folder. tensors: saved instead of the model's own, such as an average of checkpoints."""
    if isinstance(bundle.source_processor, SubwordTokenizer):
        write_durably(folder / "source.subwords", bundle.source_processor.model)
    write_durably(folder / bundle.target.target_file, bundle.target.model)
    weights = module_tensors(bundle.model) if tensors is None else tensors
    write_durably(folder / "model.safetensors", serialize_tensors(weights, WEIGHTS_METADATA))
    # Written last, since a folder with a model.toml counts as a complete run.
    write_durably(folder / "model.toml", bundle.description.as_toml().encode())


def new_model(settings: ModelSettings, source: SourceProcessor, target: Target) -> Seq2Seq:
    """A new model, randomly initialized, for this source and target."""
    source_size = len(source) if isinstance(source, SubwordTokenizer) else 0
    target_size = len(as_vocabulary(target)) if has_tokens(target) else 0
    return Seq2Seq(settings, source_vocabulary_size=source_size, target_vocabulary_size=target_size)


def load_bundle(folder: Path, device: str = "cpu") -> Bundle:
    """The model of a run, in evaluation mode. Raises RegardError if the folder is not a trained run or is damaged."""
    run = open_run(folder)
    source, target = run.source_processor, run.target
    try:
        with torch.random.fork_rng(devices=[]):  # initialization must not advance the global random generator
            model = new_model(run.description.model, source, target)
    except RegardError as error:
        raise RegardError(f"{folder / 'model.toml'}: {error}") from None
    copy_tensors_into(model, read_weights(folder / "model.safetensors"), str(folder / "model.safetensors"))
    return Bundle(run.description, model.to(device).eval(), source, target)
