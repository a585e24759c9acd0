"""A trained model as a folder that a person can read.

model.toml           what it is made of, and how text goes in and out
model.safetensors    its weights
source.subwords      sentencepiece models of both sides
target.subwords
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from regard.data.subwords import Subwords
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings
from regard.settings import Settings, read_toml


class Description(Settings):
    """What is in model.toml."""

    format: Annotated[int, Field(ge=1, le=1)] = 1
    source_language: str | None = None
    target_language: str | None = None
    lowercase: bool = False
    longest: int = 256  # target tokens that were seen in training, at most
    per_token: float = 2.0  # target tokens for a source token, at most, as training had them
    model: ModelSettings


@dataclass(frozen=True)
class Bundle:
    """A model, its subwords and its description."""

    description: Description
    model: Seq2Seq
    source_subwords: Subwords
    target_subwords: Subwords


def tensors_of(module: nn.Module) -> dict[str, Tensor]:
    """Every parameter and buffer once, by name; shared ones under their first name."""
    parts = {name: value.detach() for name, value in module.named_parameters()}
    return parts | {name: value.detach() for name, value in module.named_buffers()}


def put_tensors(module: nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Copy tensors into a module. Raises ValueError naming what is missing, too much, or of another shape."""
    own = tensors_of(module)
    for name in own.keys() ^ tensors.keys():
        raise ValueError(f"{where}: tensor {name} {'is missing' if name in own else 'has no place in this model'}.")
    with torch.no_grad():
        for name, value in tensors.items():
            if own[name].shape != value.shape:
                raise ValueError(
                    f"{where}: tensor {name} is {tuple(value.shape)}, the model has {tuple(own[name].shape)}."
                )
            own[name].copy_(value)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file. Raises ValueError if it is damaged."""
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:  # which safetensors says of a file that may not be read, too
        what = "it may not be read; check its permissions" if path.exists() else "there is no such file"
        raise ValueError(f"{path}: {what}.") from None
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{path}: it is damaged and cannot be read ({error}); regard train --resume makes a run's model again."
        ) from None


def write_durably(path: Path, content: bytes) -> None:
    """Write beside, force to disk, rename: the file is the old one or the new one, never half of either."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except PermissionError:
        raise ValueError(f"{path}: it may not be written; check the folder's permissions.") from None
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to disk, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def as_bytes(tensors: Mapping[str, Tensor], about: dict[str, str] | None = None) -> bytes:
    """A safetensors file's content."""
    return save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, about)


def save_bundle(folder: Path, bundle: Bundle, tensors: Mapping[str, Tensor] | None = None) -> None:
    """Into a folder; `tensors` in place of the model's own, such as an average."""
    write_durably(folder / "source.subwords", bundle.source_subwords.model)
    write_durably(folder / "target.subwords", bundle.target_subwords.model)
    weights = tensors_of(bundle.model) if tensors is None else tensors
    write_durably(folder / "model.safetensors", as_bytes(weights, {"format": "pt"}))
    # Last, since a folder with a model.toml is taken for a whole model.
    write_durably(folder / "model.toml", bundle.description.as_toml().encode())


def load_bundle(folder: Path, device: str = "cpu") -> Bundle:
    """From a folder. Raises ValueError, in one sentence, if it is not a trained run."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: there is no such folder; a run is the folder that regard train made.")
    if not (folder / "model.toml").exists():
        if (folder / "settings.toml").exists():
            raise ValueError(f"{folder}: this run has no model yet; train on with regard train --resume {folder}.")
        raise ValueError(f"{folder}: this is not a run; a run has a model.toml, made by regard train.")
    content = read_toml(folder / "model.toml")
    source, target = Subwords.load(folder / "source.subwords"), Subwords.load(folder / "target.subwords")
    try:
        description = Description.parse(content)
        with torch.random.fork_rng(devices=[]):  # drawing weights that are overwritten must not move anybody's dice
            model = Seq2Seq(description.model, source_vocabulary=len(source), target_vocabulary=len(target))
    except ValueError as error:
        raise ValueError(f"{folder / 'model.toml'}: {error}") from None
    put_tensors(model, read_tensors(folder / "model.safetensors"), str(folder / "model.safetensors"))
    return Bundle(description, model.to(device).eval(), source, target)


def read_json(path: Path) -> dict[str, object]:
    """A JSON object from a file. Raises ValueError."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: it cannot be read ({error}).") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a JSON object.")
    return content
