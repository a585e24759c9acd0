"""Checkpoints that survive a kill at any moment, even inside a save.

A checkpoint is written into a temporary folder next to the final one, every file is fsynced, a manifest with the hash
of each file is added, then the folder is renamed. Resuming loads the newest checkpoint whose manifest verifies; a
damaged one is reported and skipped. The best weights so far, which are averaged at the end, are files of their own,
written before the checkpoint that refers to them.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from regard import renames
from regard.errors import RegardError
from regard.runs.bundle import read_weights, serialize_tensors
from regard.runs.folder import WEIGHTS_METADATA, read_json, sync_folder, write_durably

MAX_CHECKPOINTS = 2  # on disk: the newest, and the one before it in case the newest is damaged


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to resume: named groups of tensors, and JSON data."""

    step: int
    groups: dict[str, dict[str, Tensor]]
    state: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, run: Path) -> None:
        self.folder, self.best_folder = run / "checkpoints", run / "candidates"

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, then remove those no longer needed. Raises OSError; earlier checkpoints are kept then."""
        self.folder.mkdir(exist_ok=True)
        self._remove_stale_folders()
        path = self.folder / f"{checkpoint.step:08d}"
        if path.exists() and self._find_damage(path) is None:
            return
        temporary = self.folder / f"{path.name}.tmp"
        try:
            temporary.mkdir()
            hashes = {}
            for name, tensors in checkpoint.groups.items():
                content = serialize_tensors(tensors, WEIGHTS_METADATA)
                hashes[f"{name}.safetensors"] = _write_synced(temporary / f"{name}.safetensors", content)
            hashes["state.json"] = _write_synced(temporary / "state.json", json.dumps(checkpoint.state).encode())
            _write_synced(temporary / "manifest.json", json.dumps({"step": checkpoint.step, "files": hashes}).encode())
            sync_folder(temporary)
            if path.exists():  # damaged
                shutil.rmtree(path)
            os.replace(temporary, path)
            sync_folder(self.folder)
        except OSError:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        self._prune(checkpoint.state)

    def load_newest(self, report: Callable[[str], None]) -> Checkpoint | None:
        """The newest undamaged checkpoint, or None if there is none at all. `report` is called for each damaged one.

        Raises RegardError if all are damaged.
        """
        paths = sorted(self._checkpoint_folders(), reverse=True)
        for path in paths:
            damage = self._find_damage(path)
            if damage is None:
                return self._read(path)
            report(f"The checkpoint of step {int(path.name):,} is damaged ({damage}).")
        if paths:
            raise RegardError(
                f"{self.folder}: no checkpoint is intact, so this run cannot continue; to train from scratch, repeat "
                f"the first command with --overwrite."
            )
        return None

    def save_best_weights(self, step: int, tensors: Mapping[str, Tensor]) -> str:
        """Write weights that are among the best so far, to be averaged at the end. Returns their hash."""
        self.best_folder.mkdir(exist_ok=True)
        content = serialize_tensors(tensors, WEIGHTS_METADATA)
        write_durably(self._best_weights_path(step), content)
        return hashlib.sha256(content).hexdigest()

    def load_best_weights(self, step: int) -> dict[str, Tensor]:
        """The weights saved by `save_best_weights`."""
        return read_weights(self._best_weights_path(step))

    def _best_weights_path(self, step: int) -> Path:
        return self.best_folder / f"{step:08d}.safetensors"

    def _checkpoint_folders(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return [path for path in self.folder.iterdir() if path.is_dir() and path.name.isdigit()]

    def _find_damage(self, path: Path) -> str | None:
        """A description of the damage to a checkpoint, or None if it is intact."""
        try:
            files = read_json(path / "manifest.json")["files"]
            assert isinstance(files, dict)
            for name, expected in files.items():
                if _file_hash(path / Path(name).name) != expected:
                    return f"{name} has changed"
            best = read_json(path / "state.json").get("best", [])
            assert isinstance(best, list)
            for entry in best:
                if _file_hash(self._best_weights_path(int(entry["step"]))) != entry["hash"]:
                    return f"the candidate of step {entry['step']} has changed"
        except (OSError, ValueError, KeyError, AssertionError, TypeError):
            return "a file is missing or unreadable"
        return None

    def _read(self, path: Path) -> Checkpoint:
        names = {file: renames.CHECKPOINT_GROUPS.get(file.stem, file.stem) for file in path.glob("*.safetensors")}
        groups = {name: read_weights(file) for file, name in sorted(names.items())}
        return Checkpoint(int(path.name), groups, renames.migrate_training_state(read_json(path / "state.json")))

    def _remove_stale_folders(self) -> None:
        """Remove temporary folders of interrupted saves."""
        for stale in self.folder.glob("*.tmp"):
            shutil.rmtree(stale, ignore_errors=True)

    def _prune(self, state: dict[str, Any]) -> None:
        for path in sorted(self._checkpoint_folders())[:-MAX_CHECKPOINTS]:
            shutil.rmtree(path, ignore_errors=True)
        referenced = {f"{entry['step']:08d}" for entry in state.get("best", [])}
        for folder in self._checkpoint_folders():
            try:
                older = read_json(folder / "state.json").get("best", [])
            except ValueError:
                continue
            assert isinstance(older, list)
            referenced |= {f"{entry['step']:08d}" for entry in older}
        for path in self.best_folder.glob("*.safetensors"):
            if path.stem not in referenced:
                path.unlink(missing_ok=True)


def _write_synced(path: Path, content: bytes) -> str:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return hashlib.sha256(content).hexdigest()


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
