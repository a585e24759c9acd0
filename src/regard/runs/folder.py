"""The folder of a trained run, and durable writes. Imports no PyTorch, which some engines do not need.

model.toml           the description: the model's settings, and how texts are processed
model.safetensors    the weights
source.subwords      sentencepiece models of source and target; a model of pictures or recordings has none for its
target.subwords      source, a classifier has target.labels
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from regard.alignment.alignment_head import AlignmentHead
from regard.alignment.shortlist import Shortlist, load_shortlist
from regard.data.media.base import media_processor
from regard.data.placeholders import Treatment
from regard.data.targets.base import TARGETS, Target
from regard.data.tokenizers import load_tokenizer
from regard.data.tokenizers.tokenizer import SubwordTokenizer
from regard.data.vocabulary import SourceProcessor, Vocabulary, as_vocabulary
from regard.errors import RegardError
from regard.models.settings import ModelSettings
from regard.plugins import check_available
from regard.renames import new_tensor_name
from regard.settings import Settings, read_toml

# In files of weights: the format that gave tensors their present names. One key only, since safetensors writes several
# in any order, and equal weights should be equal files.
WEIGHTS_METADATA = {"regard": "3"}
ALIGNMENT_FILE = "alignment.json"  # the layer and head of cross-attention that align best


class RunDescription(Settings):
    """The content of model.toml. Its names are stored, so they do not change."""

    format: Annotated[int, Field(ge=1, le=3)] = 3
    task: str | None = None  # that the model was trained for; older runs do not have it
    plugins: dict[str, str] = Field(default_factory=dict)  # that the model needs, each with its origin
    source_language: str | None = None
    target_language: str | None = None
    target_languages: tuple[str, ...] = ()  # of a multilingual model
    lowercase: bool = False
    max_tokens: int = 256  # the length of the longest target in training, in tokens
    truncate: bool = False  # texts are not split into sentences; ones that are too long are truncated
    tokens_per_source_token: float = 2.0  # the most target tokens for a source token in training
    # The kinds of placeholders in training, and how they were processed.
    placeholders: dict[str, Treatment] = Field(default_factory=dict)
    model: ModelSettings


@dataclass(frozen=True)
class RunFolder:
    """A run that was opened: everything but its weights."""

    folder: Path
    description: RunDescription
    source_processor: SourceProcessor
    target: Target

    @property
    def target_vocabulary(self) -> Vocabulary:
        """The target as tokens. Raises RegardError for a model that predicts none."""
        return as_vocabulary(self.target)

    def shortlist(self) -> Shortlist | None:
        """The vocabulary shortlist, if the run has one. Raises RegardError."""
        if not isinstance(self.source_processor, SubwordTokenizer):
            return None
        sizes = {
            "source_vocabulary_size": len(self.source_processor),
            "target_vocabulary_size": len(self.target_vocabulary),
        }
        return load_shortlist(self.folder / "shortlist.safetensors", **sizes)

    def alignment_head(self) -> AlignmentHead | None:
        """The layer and head that align best, if the run has them. Raises RegardError."""
        path = self.folder / ALIGNMENT_FILE
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


def open_run(folder: Path) -> RunFolder:
    """The run in a folder. Raises RegardError if there is none, or if it has no model yet."""
    if not folder.is_dir():
        raise RegardError(f"{folder}: there is no such folder; a run is the folder written by regard train.")
    if not (folder / "model.toml").exists():
        if (folder / "settings.toml").exists():
            raise RegardError(f"{folder}: this run has no model yet; train on with regard train --resume {folder}.")
        raise RegardError(f"{folder}: this is not a run; a run has a model.toml, written by regard train.")
    content = read_toml(folder / "model.toml")
    check_available(content.get("plugins", {}), str(folder))
    try:
        description = RunDescription.parse(content)
    except RegardError as error:
        raise RegardError(f"{folder / 'model.toml'}: {error}") from None
    source = media_processor(description.model.source) or load_tokenizer(folder / "source.subwords")
    return RunFolder(folder, description, source, load_target(folder))


def load_target(folder: Path) -> Target:
    """The target of a run: subwords, labels, or the scale of series. Raises RegardError."""
    for _, kind in TARGETS.items():
        if (folder / kind.target_file).exists():
            return kind.load(folder / kind.target_file)
    return load_tokenizer(folder / SubwordTokenizer.target_file)


def stored_names(file: Any) -> dict[str, str]:
    """The names of the tensors of an open safetensors file of weights: the present name of each, and the stored one."""
    names: list[str] = list(file.keys())
    is_current = (file.metadata() or {}).get("regard") == WEIGHTS_METADATA["regard"]
    return {name if is_current else new_tensor_name(name): name for name in names}


def model_fingerprint(folder: Path) -> str:
    """A hash of the weights and of everything else that a model's outputs depend on."""
    digest = hashlib.sha256(b"1")
    targets = [SubwordTokenizer.target_file, *(kind.target_file for _, kind in TARGETS.items())]
    for name in ("model.toml", "model.safetensors", "source.subwords", *targets, "shortlist.safetensors"):
        path = folder / name
        if path.exists():
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def write_durably(path: Path, content: bytes) -> None:
    """Write to a temporary file, fsync, rename: after a crash the file is the old or the new one, never incomplete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except PermissionError:
        raise RegardError(f"{path}: it may not be written; check the folder's permissions.") from None
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """fsync a folder's entries, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows cannot open folders
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(path: Path) -> dict[str, object]:
    """A JSON object from a file. Raises RegardError."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise RegardError(f"{path}: it cannot be read ({error}).") from None
    if not isinstance(content, dict):
        raise RegardError(f"{path}: expected a JSON object.")
    return content
