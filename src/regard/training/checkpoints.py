"""Checkpoints that survive a kill at any moment, even inside a save.

A checkpoint is written into a temporary folder beside its place, every file forced to disk, sealed by a manifest with
the hash of each file, then renamed. Resuming takes the newest whose manifest verifies; a damaged one is passed over and
said so. The candidates for the final average are files of their own, written before the checkpoint that names them.
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

from regard.errors import RegardError
from regard.runs.bundle import read_tensors, serialize_tensors
from regard.runs.folder import read_json, sync_folder, write_durably

KEPT = 2  # checkpoints on disk: the newest, and one before it in case it is damaged


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to go on: named groups of tensors, and plain data."""

    step: int
    groups: dict[str, dict[str, Tensor]]
    state: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, run: Path) -> None:
        self.folder, self.candidates = run / "checkpoints", run / "candidates"

    def save(self, checkpoint: Checkpoint) -> None:
        """Write and seal one, then remove what is no longer needed. Raises OSError; what was there before stays."""
        self.folder.mkdir(exist_ok=True)
        self._sweep()
        place = self.folder / f"{checkpoint.step:08d}"
        if place.exists() and self._flaw(place) is None:
            return
        beside = self.folder / f"{place.name}.tmp"
        try:
            beside.mkdir()
            hashes = {}
            for name, tensors in checkpoint.groups.items():
                hashes[f"{name}.safetensors"] = _write(beside / f"{name}.safetensors", serialize_tensors(tensors))
            hashes["state.json"] = _write(beside / "state.json", json.dumps(checkpoint.state).encode())
            _write(beside / "manifest.json", json.dumps({"step": checkpoint.step, "files": hashes}).encode())
            sync_folder(beside)
            if place.exists():  # damaged: its replacement is whole
                shutil.rmtree(place)
            os.replace(beside, place)
            sync_folder(self.folder)
        except OSError:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        self._prune(checkpoint.state)

    def newest(self, tell: Callable[[str], None]) -> Checkpoint | None:
        """The newest that is whole, or None where there never was one. `tell` hears of each that is not.

        Raises RegardError if all are damaged.
        """
        places = sorted(self._places(), reverse=True)
        for place in places:
            flaw = self._flaw(place)
            if flaw is None:
                return self._read(place)
            tell(f"The checkpoint of step {int(place.name):,} is damaged ({flaw}).")
        if places:
            raise RegardError(
                f"{self.folder}: no checkpoint is whole, so this run cannot go on; to train anew, say the same as at "
                f"first, with --overwrite."
            )
        return None

    def keep_candidate(self, step: int, tensors: Mapping[str, Tensor]) -> str:
        """Write one set of weights that may be averaged at the end; its hash."""
        self.candidates.mkdir(exist_ok=True)
        content = serialize_tensors(tensors)
        write_durably(self._candidate(step), content)
        return hashlib.sha256(content).hexdigest()

    def candidate(self, step: int) -> dict[str, Tensor]:
        """Read one back."""
        return read_tensors(self._candidate(step))

    def _candidate(self, step: int) -> Path:
        return self.candidates / f"{step:08d}.safetensors"

    def _places(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return [place for place in self.folder.iterdir() if place.is_dir() and place.name.isdigit()]

    def _flaw(self, place: Path) -> str | None:
        """What is wrong with a checkpoint, or None."""
        try:
            files = read_json(place / "manifest.json")["files"]
            assert isinstance(files, dict)
            for name, expected in files.items():
                if _hash(place / Path(name).name) != expected:
                    return f"{name} has changed"
            best = read_json(place / "state.json").get("best", [])
            assert isinstance(best, list)
            for candidate in best:
                if _hash(self._candidate(int(candidate["step"]))) != candidate["hash"]:
                    return f"the candidate of step {candidate['step']} has changed"
        except (OSError, ValueError, KeyError, AssertionError, TypeError):
            return "a file is missing or unreadable"
        return None

    def _read(self, place: Path) -> Checkpoint:
        groups = {path.stem: read_tensors(path) for path in sorted(place.glob("*.safetensors"))}
        return Checkpoint(int(place.name), groups, read_json(place / "state.json"))

    def _sweep(self) -> None:
        """Remove what a killed save left behind."""
        for stale in self.folder.glob("*.tmp"):
            shutil.rmtree(stale, ignore_errors=True)

    def _prune(self, state: dict[str, Any]) -> None:
        for place in sorted(self._places())[:-KEPT]:
            shutil.rmtree(place, ignore_errors=True)
        named = {f"{candidate['step']:08d}" for candidate in state.get("best", [])}
        for place in self._places():
            try:
                older = read_json(place / "state.json").get("best", [])
            except ValueError:
                continue
            assert isinstance(older, list)
            named |= {f"{candidate['step']:08d}" for candidate in older}
        for path in self.candidates.glob("*.safetensors"):
            if path.stem not in named:
                path.unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> str:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return hashlib.sha256(content).hexdigest()


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
