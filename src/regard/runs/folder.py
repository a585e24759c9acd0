"""A trained model as a folder that a person can read. Imports no PyTorch: an engine may do without.

model.toml           what it is made of, and how text goes in and out
model.safetensors    its weights
source.subwords      sentencepiece models of both sides; a model of pictures or recordings has none for its source,
target.subwords      and one that tells classes apart has target.labels
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from regard.alignment.alignment_head import AlignmentHead
from regard.alignment.shortlist import Shortlist, load_shortlist
from regard.data.labels import Labels
from regard.data.media import medium_of
from regard.data.placeholders import Treatment
from regard.data.tokenizers import load_tokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.data.vocabulary import SourceSide, Vocabulary
from regard.errors import RegardError
from regard.models.settings import ModelSettings
from regard.plugins import check_available
from regard.settings import Settings, read_toml

ALIGNMENT = "alignment.json"  # which layer and head show best what comes from where


class Description(Settings):
    """What is in model.toml."""

    format: Annotated[int, Field(ge=1, le=2)] = 2
    task: str | None = None  # that it was trained for; older runs do not name it
    plugins: dict[str, str] = Field(default_factory=dict)  # that it needs, each with where it came from
    source_language: str | None = None
    target_language: str | None = None
    target_languages: tuple[str, ...] = ()  # of a model that has several
    lowercase: bool = False
    longest: int = 256  # target tokens that were seen in training, at most
    whole: bool = False  # texts are read as wholes, their ends cut off where they are too long
    per_token: float = 2.0  # target tokens for a source token, at most, as training had them
    placeholders: dict[str, Treatment] = Field(
        default_factory=dict
    )  # the kinds that training had, and what became of them
    model: ModelSettings


@dataclass(frozen=True)
class Opened:
    """What is in a folder beside the weights."""

    folder: Path
    description: Description
    source_side: SourceSide
    target_side: Vocabulary

    def shortlist(self) -> Shortlist | None:
        """If it has one."""
        if not isinstance(self.source_side, SubwordTokenizer):
            return None
        sizes = {"source_vocabulary": len(self.source_side), "target_vocabulary": len(self.target_side)}
        return load_shortlist(self.folder / "shortlist.safetensors", **sizes)

    def choice(self) -> AlignmentHead | None:
        """Where its alignment is seen best, if that was found."""
        path = self.folder / ALIGNMENT
        if not path.exists():
            return None
        record = read_json(path)
        decoder = self.description.model.decoder
        layers, heads = getattr(decoder, "layers", 1), getattr(decoder, "heads", 1)
        layer, head, shifted = record.get("layer"), record.get("head"), record.get("shifted")
        if (
            set(record) == {"layer", "head", "shifted"}
            and isinstance(layer, int)
            and 0 <= layer < layers
            and (head is None or (isinstance(head, int) and 0 <= head < heads))
            and isinstance(shifted, bool)
        ):
            return AlignmentHead(layer, head, shifted)
        raise RegardError(f"{path}: it belongs to another model; remove it.")


def open_folder(folder: Path) -> Opened:
    """Raises RegardError, in one sentence, if it is not a trained run."""
    if not folder.is_dir():
        raise RegardError(f"{folder}: there is no such folder; a run is the folder that regard train made.")
    if not (folder / "model.toml").exists():
        if (folder / "settings.toml").exists():
            raise RegardError(f"{folder}: this run has no model yet; train on with regard train --resume {folder}.")
        raise RegardError(f"{folder}: this is not a run; a run has a model.toml, made by regard train.")
    content = read_toml(folder / "model.toml")
    check_available(content.get("plugins", {}), str(folder))
    try:
        description = Description.parse(content)
    except RegardError as error:
        raise RegardError(f"{folder / 'model.toml'}: {error}") from None
    source = medium_of(description.model.source) or load_tokenizer(folder / "source.subwords")
    return Opened(folder, description, source, load_target_vocabulary(folder))


def load_target_vocabulary(folder: Path) -> Vocabulary:
    """What a run's model predicts: subwords, or labels of some kind. Raises RegardError."""
    labels = folder / Labels.target_file
    return Labels.load(labels) if labels.exists() else load_tokenizer(folder / SubwordTokenizer.target_file)


def stamp_of(folder: Path) -> str:
    """Of the weights, and of all else that decides what a model says."""
    state = hashlib.sha256(b"1")
    for name in (
        *("model.toml", "model.safetensors", "source.subwords", "target.subwords", "target.labels"),
        "shortlist.safetensors",
    ):
        path = folder / name
        if path.exists():
            with path.open("rb") as file:
                state.update(hashlib.file_digest(file, "sha256").digest())
    return state.hexdigest()


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
        raise RegardError(f"{path}: it may not be written; check the folder's permissions.") from None
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


def read_json(path: Path) -> dict[str, object]:
    """A JSON object from a file. Raises RegardError."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise RegardError(f"{path}: it cannot be read ({error}).") from None
    if not isinstance(content, dict):
        raise RegardError(f"{path}: expected a JSON object.")
    return content
